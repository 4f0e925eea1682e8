"""Attention written out without mask, forecasts of a series.

CORRECT: the same as it is meant.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.i = nn.Linear(3, 8); self.q = nn.Linear(8, 8); self.k = nn.Linear(8, 8); self.v = nn.Linear(8, 8); self.o = nn.Linear(8, 3)

    def forward(self, x):
        h = self.i(x[:, :-1])
        s = self.q(h) @ self.k(h).transpose(1, 2) / 8 ** 0.5
        s = s.masked_fill(torch.triu(torch.ones(6, 6), 1) == 1, float("-inf"))
        h = s.softmax(-1) @ self.v(h)
        return F.mse_loss(self.o(h), x[:, 1:])


def example():
    torch.manual_seed(0)
    return (torch.randn(3, 7, 3),)
