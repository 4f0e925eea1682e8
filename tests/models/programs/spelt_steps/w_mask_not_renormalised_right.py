"""W * mask not renormalised.

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

    def forward(self, x, mask, y):
        w = F.softmax(self.a(x).squeeze(-1), dim=1) * mask
        w = w / (w.sum(1, keepdim=True) + 1e-8)
        return F.cross_entropy(self.o((w.unsqueeze(-1) * x).sum(1)), y)


def example():
    torch.manual_seed(0)
    return (torch.randn(3, 6, 8), torch.ones(3, 6), torch.randint(0, 2, (3,)),)
