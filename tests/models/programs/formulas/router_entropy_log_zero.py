"""Mixture of experts: entropy of the top-2 gate, with the small constant outside of the logarithm.

The gate is zero for all experts but two; 0 * (log 0 + 1e-6) = nan for every token.  Fix: log(p + 1e-6).
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, d=6, E=4):
        super().__init__()
        self.gate = nn.Linear(d, E)
        self.experts = nn.Parameter(torch.randn(E, d, d) * .2)

    def entropy(self, p):
        return -(p * (torch.log(p) + 1e-6)).sum(-1).mean()

    def forward(self, x, y):
        g = self.gate(x)
        top, idx = g.topk(2, dim=-1)
        p = torch.zeros_like(g).scatter(-1, idx, torch.softmax(top, -1))
        o = torch.einsum("nd,edf,ne->nf", x, self.experts, p)
        return ((o - y) ** 2).mean() - 0.01 * self.entropy(p)  # fault: guard-after-logarithm


class Fixed(Step):
    def entropy(self, p):
        return -(p * torch.log(p + 1e-6)).sum(-1).mean()


def example():
    torch.manual_seed(39)
    return torch.randn(5, 6), torch.randn(5, 6)
