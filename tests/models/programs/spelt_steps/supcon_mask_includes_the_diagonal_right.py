"""Supcon: mask includes the diagonal.

CORRECT: the same as it is meant.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Linear(8, 5)

    def forward(self, x, y):
        z = F.normalize(self.e(x), dim=1)
        s = z @ z.t() / 0.1
        eye = torch.eye(6)
        same = (y[:, None] == y[None, :]).float() * (1 - eye)
        logp = s - torch.log((s.exp() * (1 - eye)).sum(1, keepdim=True))
        return -((same * logp).sum(1) / same.sum(1).clamp(min=1)).mean()


def example():
    torch.manual_seed(0)
    return (torch.randn(6, 8), torch.tensor([0, 0, 1, 1, 2, 2]),)
