"""Demand forecast of several days with quantile (pinball) loss and missing values.

CORRECT: target [N, H, 1] broadcasts against [N, H, Q] on purpose; max(q * e, (q - 1) * e); the observed mask is averaged over observed days only.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class DemandGRU(nn.Module):
    def __init__(self, n_feat=5, hidden=20, horizon=4, n_q=3):
        super().__init__()
        self.gru = nn.GRU(n_feat, hidden, batch_first=True)
        self.head = nn.Linear(hidden, horizon * n_q)
        self.horizon, self.n_q = horizon, n_q

    def forward(self, past):
        _, h = self.gru(past)
        return self.head(h[-1]).view(-1, self.horizon, self.n_q)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = DemandGRU()
        self.register_buffer("q", torch.tensor([0.1, 0.5, 0.9]))

    def forward(self, past, future, observed):
        pred = self.model(past)
        scale = past[:, :, 0].abs().mean(dim=1, keepdim=True) + 1.0
        err = (future / scale).unsqueeze(-1) - pred
        pinball = torch.maximum(self.q * err, (self.q - 1) * err).sum(dim=-1)
        return (pinball * observed).sum() / observed.sum().clamp(min=1.0)


def example():
    g = torch.Generator().manual_seed(1)
    observed = (torch.rand(7, 4, generator=g) > 0.2).float()
    return (torch.randn(7, 12, 5, generator=g), torch.rand(7, 4, generator=g) * 4, observed)


OPEN = [{0: "batch"}] * 3
