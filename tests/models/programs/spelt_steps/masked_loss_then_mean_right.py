"""Masked loss then .mean().

CORRECT: the same as it is meant.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.GRU(8, 12, batch_first=True); self.o = nn.Linear(12, 5)

    def forward(self, x, y, mask):
        h, _ = self.l(x)
        l = F.cross_entropy(self.o(h).transpose(1, 2), y, reduction="none")
        return (l * mask).sum() / mask.sum()


def example():
    torch.manual_seed(0)
    return (torch.randn(3, 6, 8), torch.randint(0, 5, (3, 6)), torch.ones(3, 6),)
