"""Ordinal regression of disease severity (5 grades) with a cumulative link model and learned cut points.

MISTAKE (may): the four cut points are free parameters and need not stay in order, so the difference of two cumulative probabilities can be negative or 0 and its log NaN or -inf; cumsum of softplus keeps them ordered (with a floor).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, grades=5):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(9, 16), nn.Softplus(), nn.Linear(16, 1))
        self.cuts = nn.Parameter(torch.tensor([-1.0, 0.5, 0.2, 1.0]))

    def log_probs(self, s):
        cdf = torch.sigmoid(self.cuts - s)
        cdf = torch.cat([torch.zeros_like(s), cdf, torch.ones_like(s)], dim=1)
        return torch.log(cdf[:, 1:] - cdf[:, :-1])  # fault: invalid-domain

    def forward(self, clinical, grade):
        return F.nll_loss(self.log_probs(self.score(clinical)), grade)  # fault: invalid-domain


class Fixed(Step):
    def log_probs(self, s):
        cuts = torch.cat([self.cuts[:1], F.softplus(self.cuts[1:])]).cumsum(0)
        cdf = torch.sigmoid(cuts - s)
        cdf = torch.cat([torch.zeros_like(s), cdf, torch.ones_like(s)], dim=1)
        return torch.log((cdf[:, 1:] - cdf[:, :-1]).clamp(min=1e-7))


def example():
    torch.manual_seed(113)
    return torch.randn(6, 9), torch.tensor([0, 1, 2, 3, 4, 2])


OPEN = [{0: "patients"}, {0: "patients"}]
