"""Nt-xent denominators with exp and own included.

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

    def forward(self, a, b):
        za = F.normalize(self.e(a), dim=1); zb = F.normalize(self.e(b), dim=1)
        z = torch.cat([za, zb]); s = torch.exp(z @ z.t() / 0.5)
        pos = torch.exp((za * zb).sum(1) / 0.5).repeat(2)
        den = s.sum(1)- math.exp(2.0)
        return -torch.log(pos / den).mean()


def example():
    torch.manual_seed(0)
    return (torch.randn(6, 8), torch.randn(6, 8),)
