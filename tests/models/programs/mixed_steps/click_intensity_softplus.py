"""Temporal point process: intensities by a softplus written out, negative log likelihood of the events.

MISTAKE (may): log(1 + exp(x)) by hand overflows to inf for x above 88; use softplus (logaddexp).
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.decay = nn.Parameter(torch.tensor([0.1, 0.5, 2.0]))
        self.lin = nn.Linear(3, 1)

    def positive(self, x):
        return torch.log(1.0 + torch.exp(x))  # fault: overflow-in-exp

    def forward(self, gaps):
        hist = torch.cumsum(gaps, dim=1)
        age = (hist[:, :, None] - hist[:, None, :]).clamp(min=0.0)
        before = torch.ones(gaps.shape[1], gaps.shape[1]).tril(-1)
        kern = torch.exp(-age[..., None] * self.decay.abs()) * before[None, :, :, None]
        lam = self.positive(self.lin(kern.sum(2)).squeeze(-1))  # fault: overflow-in-exp
        return (lam * gaps - torch.log(lam)).sum(1).mean()


class Fixed(Step):
    def positive(self, x):
        return nn.functional.softplus(x)


def example():
    torch.manual_seed(61)
    return (torch.rand(4, 8) + 0.05,)
