import torch
import torch.nn.functional as F
from torch import nn


class DeepHash(nn.Module):
    def __init__(self, bits=16):
        super().__init__()
        self.bits = bits
        self.net = nn.Sequential(nn.Linear(50, 40), nn.ReLU(), nn.Linear(40, bits))

    def forward(self, x, y):
        u = torch.sign(self.net(x))
        theta = 0.5 * (u @ u.t())
        s = (y[:, None] == y[None, :]).float()
        return (F.softplus(theta) - s * theta).mean()  # fault: loss-detached-from-parameters


def example():
    return (torch.randn(12, 50), torch.randint(0, 3, (12,)))


Step = DeepHash
