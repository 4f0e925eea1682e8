import torch
import torch.nn.functional as F
from torch import nn


def to_gray(img):
    r, g, b = img[:, 0], img[:, 1], img[:, 2]
    gray = (r + g + b) // 3  # fault: byte-arithmetic-wraps
    return gray.unsqueeze(1)


class Colorizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Conv2d(1, 3, 3, padding=1)

    def forward(self, img):
        x = to_gray(img).to(torch.float32) / 255  # fault: byte-arithmetic-wraps
        out = torch.sigmoid(self.up(x))
        return F.mse_loss(out, img.to(torch.float32) / 255)


def example():
    return (torch.randint(0, 256, (2, 3, 9, 9), dtype=torch.uint8),)


Step = Colorizer
