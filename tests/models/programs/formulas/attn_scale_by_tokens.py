"""Self attention with its 1/sqrt scale taken from the wrong axis.

q is (B, H, T, D); the scores are divided by sqrt(q.size(2)) = sqrt(T), the number of tokens, not by the
sqrt of the head width D.  Fix: q.size(-1).
"""
import math

import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, dim=32, heads=2):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def width(self, q):
        return q.size(2)

    def forward(self, x, target):
        b, t, c = x.shape
        q, k, v = self.qkv(x).reshape(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        att = q @ k.transpose(-2, -1) / math.sqrt(self.width(q))  # fault: scores-scaled-by-other-extent
        o = att.softmax(-1) @ v
        y = self.proj(o.transpose(1, 2).reshape(b, t, c))
        return ((y - target) ** 2).mean()


class Fixed(Step):
    def width(self, q):
        return q.size(-1)


def example():
    torch.manual_seed(3)
    return torch.randn(2, 9, 32), torch.randn(2, 9, 32)
