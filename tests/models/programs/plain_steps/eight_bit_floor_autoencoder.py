import torch
import torch.nn.functional as F
from torch import nn


class Codec(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Conv2d(1, 4, 4, stride=4)
        self.d = nn.ConvTranspose2d(4, 1, 4, stride=4)

    def forward(self, x):
        y = torch.sigmoid(self.d(torch.tanh(self.e(x))))
        y = torch.floor(y * 255.0 + 0.5) / 255.0
        return F.mse_loss(y, x)  # fault: loss-detached-from-parameters


def example():
    return (torch.rand(3, 1, 16, 16),)


Step = Codec
