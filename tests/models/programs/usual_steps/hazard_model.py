"""Hazard model.

MISTAKE (silent): ascending order, the cumulative sum below then covers subjects that already left; needs descending=True.
"""
import torch
import torch.nn as nn


class DeepSurv(nn.Module):
    def __init__(self, n_cov=15, hidden=(32, 16)):
        super().__init__()
        dims = (n_cov,) + hidden
        self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in zip(dims[:-1], dims[1:])])
        self.risk = nn.Linear(dims[-1], 1, bias=False)

    def forward(self, x):
        for lin in self.layers:
            x = torch.selu(lin(x))
        return self.risk(x).squeeze(-1)


def cox_ph_loss(log_h, durations, events):
    """Negative partial log-likelihood; the risk set are subjects still under observation."""
    idx = torch.argsort(durations)  # fault: risk-set-of-the-past
    log_h = log_h[idx]
    events = events[idx]
    gamma = log_h.max().detach()
    log_cumsum = (log_h - gamma).exp().cumsum(0).add(1e-7).log() + gamma
    return -((log_h - log_cumsum) * events).sum() / events.sum()


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = DeepSurv()

    def forward(self, covariates, durations, events):
        return cox_ph_loss(self.net(covariates), durations, events)  # fault: risk-set-of-the-past


def example():
    torch.manual_seed(0)
    ev = (torch.rand(26) < 0.6).float()
    return torch.randn(26, 15), torch.rand(26) * 10, ev
