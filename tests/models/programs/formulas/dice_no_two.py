"""Soft dice loss for medical segmentation without the factor 2.

Dice = 2*I/(|P|+|G|); without the 2 a perfect prediction scores 0.5 and the loss never falls below 0.5.
Fix: 2 * inter.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 8, 3, padding=1)
        self.c2 = nn.Conv2d(8, 1, 1)

    def dice(self, p, g):
        dims = (1, 2, 3)
        inter = (p * g).sum(dims)
        return (inter + 1.0) / (p.sum(dims) + g.sum(dims) + 1.0)

    def forward(self, img, gt):
        p = torch.sigmoid(self.c2(torch.relu(self.c1(img))))
        return 1 - self.dice(p, gt).mean()  # fault: dice-without-factor


class Fixed(Step):
    def dice(self, p, g):
        dims = (1, 2, 3)
        inter = (p * g).sum(dims)
        return (2 * inter + 1.0) / (p.sum(dims) + g.sum(dims) + 1.0)


def example():
    torch.manual_seed(15)
    return torch.randn(2, 1, 8, 8), (torch.rand(2, 1, 8, 8) > .6).float()
