"""Inverted done bool where.

CORRECT: the same as it is meant.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(6, 4); self.t = nn.Linear(6, 4)

    def forward(self, s, a, r, s2, done):
        q = self.q(s).gather(1, a[:, None]).squeeze(1)
        nxt = self.t(s2).amax(1)
        y = r + 0.99 * torch.where(~done, nxt, torch.zeros_like(nxt))
        return F.mse_loss(q, y.detach())


def example():
    torch.manual_seed(0)
    return (torch.randn(7, 6), torch.randint(0, 4, (7,)), torch.randn(7), torch.randn(7, 6), torch.zeros(7, dtype=torch.bool),)
