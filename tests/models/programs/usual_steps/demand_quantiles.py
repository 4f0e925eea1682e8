"""Demand quantiles.

CORRECT: [N,1] - [N,Q], each quantile output is compared with the same target.
"""
import torch
import torch.nn as nn

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


class QuantileNet(nn.Module):
    def __init__(self, n_feat=16, n_store=30):
        super().__init__()
        self.store = nn.Embedding(n_store, 6)
        self.net = nn.Sequential(nn.Linear(n_feat + 6, 36), nn.ReLU(), nn.Linear(36, len(QUANTILES)))

    def forward(self, x, store):
        return self.net(torch.cat([x, self.store(store)], dim=1))


def pinball(pred, y, q):
    err = y.unsqueeze(1) - pred
    return torch.maximum(q * err, (q - 1.0) * err).sum(dim=1).mean()


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = QuantileNet()
        self.register_buffer("q", torch.tensor(QUANTILES))

    def forward(self, x, store, demand):
        pred = self.model(x, store)
        crossing = torch.relu(pred[:, :-1] - pred[:, 1:]).mean()
        return pinball(pred, demand, self.q) + 0.1 * crossing


def example():
    torch.manual_seed(0)
    return torch.randn(23, 16), torch.randint(0, 30, (23,)), torch.rand(23) * 8
