"""Factorisation machine: second-order term as sum of squares minus square of the sum.

Sum over pairs <vi,vj> = ((sum v)^2 - sum v^2)/2; the sign is reversed here.  Fix: exchange operands.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, nfeat=30, k=5):
        super().__init__()
        self.lin = nn.Embedding(nfeat, 1)
        self.fac = nn.Embedding(nfeat, k)
        nn.init.normal_(self.fac.weight, std=0.2)
        self.b = nn.Parameter(torch.zeros(()))

    def pairs(self, e):
        s = e.sum(1).pow(2)
        q = e.pow(2).sum(1)
        return 0.5 * (q - s).sum(-1)

    def forward(self, ids, click):
        out = self.b + self.lin(ids).sum((1, 2)) + self.pairs(self.fac(ids))  # fault: square-of-sum-subtracted
        return nn.functional.binary_cross_entropy_with_logits(out, click)


class Fixed(Step):
    def pairs(self, e):
        s = e.sum(1).pow(2)
        q = e.pow(2).sum(1)
        return 0.5 * (s - q).sum(-1)


def example():
    torch.manual_seed(24)
    return torch.randint(0, 30, (6, 4)), torch.tensor([0., 1, 1, 0, 1, 0])
