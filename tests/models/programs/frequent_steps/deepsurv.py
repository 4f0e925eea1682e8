"""DeepSurv: Cox proportional hazards with a neural risk score.

CORRECT: unusual, and as it is meant.
"""
import torch
import torch.nn as nn


class RiskNet(nn.Module):
    def __init__(self, d, hidden=(24, 12)):
        super().__init__()
        layers = []
        for h in hidden:
            layers += [nn.Linear(d, h), nn.SELU()]
            d = h
        self.body = nn.Sequential(*layers)
        self.out = nn.Linear(d, 1, bias=False)

    def forward(self, x):
        return self.out(self.body(x)).squeeze(-1)


def cox_loss(log_h, durations, events):
    idx = torch.argsort(durations, descending=True)
    log_h, events = log_h[idx], events[idx]
    gamma = log_h.max()
    log_cumsum_h = (log_h - gamma).exp().cumsum(0).add(1e-7).log() + gamma
    return -((log_h - log_cumsum_h) * events).sum() / events.sum().clamp(min=1.0)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.risk = RiskNet(9)

    def forward(self, covariates, durations, events):
        return cox_loss(self.risk(covariates), durations, events)


def example():
    g = torch.Generator().manual_seed(17)
    n = 16
    x = torch.randn(n, 9, generator=g)
    t = torch.rand(n, generator=g) * 120
    e = (torch.rand(n, generator=g) < 0.6).float()
    return x, t, e
