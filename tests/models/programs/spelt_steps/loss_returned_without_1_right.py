"""Loss returned without 1 -.

CORRECT: the same as it is meant.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.o = nn.Linear(8, 4)

    def forward(self, x, b):
        p = self.o(x).sigmoid(); a = torch.cat([p[:, :2], p[:, :2] + p[:, 2:]], 1)
        lt = torch.max(a[:, :2], b[:, :2]); rb = torch.min(a[:, 2:], b[:, 2:])
        wh = (rb - lt).clamp(min=0); inter = wh[:, 0] * wh[:, 1]
        u = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1]) + (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1]) - inter
        return (1 - inter / (u + 1e-6)).mean()


def example():
    torch.manual_seed(0)
    return (torch.randn(5, 8), torch.tensor([[.1,.2,.5,.6]]).repeat(5,1),)
