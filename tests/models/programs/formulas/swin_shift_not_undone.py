"""Shifted windows: the map is rolled by (-s, -s) before the block and again by (-s, -s) afterwards.

The shift is doubled instead of undone, so the residual adds features of other pixels.  Fix: roll(+s).
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, c=6, win=4):
        super().__init__()
        self.win, self.s = win, win // 2
        self.mix = nn.Linear(win * win, win * win)
        self.head = nn.Linear(c, 3)

    def unshift(self, y):
        return torch.roll(y, shifts=(-self.s, -self.s), dims=(1, 2))

    def forward(self, x, y):
        B, H, W, C = x.shape
        w = self.win
        z = torch.roll(x, shifts=(-self.s, -self.s), dims=(1, 2))
        z = z.view(B, H // w, w, W // w, w, C).permute(0, 1, 3, 5, 2, 4).reshape(-1, C, w * w)
        z = torch.relu(self.mix(z))
        z = z.view(B, H // w, W // w, C, w, w).permute(0, 1, 4, 2, 5, 3).reshape(B, H, W, C)
        x = x + self.unshift(z)  # fault: shift-not-undone
        return nn.functional.cross_entropy(self.head(x.mean((1, 2))), y)


class Fixed(Step):
    def unshift(self, y):
        return torch.roll(y, shifts=(self.s, self.s), dims=(1, 2))


def example():
    torch.manual_seed(35)
    return torch.randn(2, 8, 8, 6), torch.tensor([0, 2])
