"""Masked attention by lengths inverted.

CORRECT: the same as it is meant.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 1); self.o = nn.Linear(8, 2)

    def forward(self, x, lengths, y):
        valid = torch.arange(6)[None, :] < lengths[:, None]
        s = self.a(x).squeeze(-1).masked_fill(~valid, -1e9)
        w = s.softmax(1)
        return F.cross_entropy(self.o(torch.einsum("nt,ntd->nd", w, x)), y)


def example():
    torch.manual_seed(0)
    return (torch.randn(3, 6, 8), torch.tensor([3, 5, 2]), torch.randint(0, 2, (3,)),)
