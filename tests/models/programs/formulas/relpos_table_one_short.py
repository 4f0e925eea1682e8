"""Relative position bias for T = 6 tokens: distances -5..5 are 11 values, the table has 2*T - 2 = 10 rows.

The index j - i + T - 1 reaches 10: out of range.  Fix: 2*T - 1 rows.
"""
import torch
from torch import nn


class Step(nn.Module):
    T = 6
    ROWS = 2 * 6 - 2

    def __init__(self, d=8, h=2):
        super().__init__()
        self.h = h
        self.qk = nn.Linear(d, 2 * d)
        self.v = nn.Linear(d, d)
        self.rel = nn.Parameter(torch.zeros(self.ROWS, h))

    def bias(self):
        r = torch.arange(self.T)
        idx = r[None, :] - r[:, None] + self.T - 1
        return torch.nn.functional.embedding(idx, self.rel).permute(2, 0, 1)

    def forward(self, x, y):
        b, t, d = x.shape
        q, k = self.qk(x).view(b, t, 2, self.h, -1).unbind(2)
        s = torch.einsum("bihd,bjhd->bhij", q, k) / (d // self.h) ** 0.5
        a = torch.softmax(s + self.bias(), -1)  # fault: index-out-of-range
        o = torch.einsum("bhij,bjhd->bihd", a, self.v(x).view(b, t, self.h, -1)).reshape(b, t, d)
        return ((o - y) ** 2).mean()


class Fixed(Step):
    ROWS = 2 * 6 - 1


def example():
    torch.manual_seed(34)
    return torch.randn(2, 6, 8), torch.randn(2, 6, 8)
