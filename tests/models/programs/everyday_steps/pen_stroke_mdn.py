"""Pen stroke mdn.

MISTAKE (silent): mixes over the samples; components are dim 1.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class MDN(nn.Module):
    def __init__(self, d_in=10, k=5, d_out=2):
        super().__init__()
        self.k, self.d = k, d_out
        self.h = nn.Sequential(nn.Linear(d_in, 64), nn.Tanh())
        self.pi = nn.Linear(64, k)
        self.mu = nn.Linear(64, k * d_out)
        self.ls = nn.Linear(64, k * d_out)

    def forward(self, x):
        h = self.h(x)
        n = x.shape[0]
        return self.pi(h), self.mu(h).view(n, self.k, self.d), self.ls(h).view(n, self.k, self.d).clamp(-5, 3)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.mdn = MDN()

    def forward(self, x, y):
        pi, mu, ls = self.mdn(x)
        z = (y.unsqueeze(1) - mu) * torch.exp(-ls)
        comp = (-0.5 * z * z - ls - 0.5 * math.log(2 * math.pi)).sum(-1)
        log_mix = F.log_softmax(pi, dim=-1) + comp
        ll = torch.logsumexp(log_mix, dim=0)  # fault: reduction-over-batch-axis
        return -ll.mean()


def example():
    torch.manual_seed(0)
    return torch.randn(100, 10), torch.randn(100, 2)
