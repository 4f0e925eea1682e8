"""Double shift.

CORRECT: the same as it is meant.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(20, 8); self.l = nn.GRU(8, 12, batch_first=True); self.o = nn.Linear(12, 20)

    def forward(self, t):
        x, y = t[:, :-1], t[:, 1:]
        h, _ = self.l(self.e(x))
        z = self.o(h)
        return F.cross_entropy(z.reshape(-1, 20), y.reshape(-1))


def example():
    torch.manual_seed(0)
    return (torch.randint(0, 20, (3, 7)),)
