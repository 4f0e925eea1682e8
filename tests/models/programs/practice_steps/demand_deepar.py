"""Probabilistic demand forecasting (DeepAR style) with a Gaussian likelihood.

CORRECT: the series are scaled by the mean of their first days, the input is the demand of the day before; sigma comes from
softplus and goes into the likelihood as sigma (log sigma + half of the squared z); missing days are masked.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class DemandRNN(nn.Module):
    def __init__(self, n_items=25, n_cov=3, emb=5, hidden=20):
        super().__init__()
        self.item = nn.Embedding(n_items, emb)
        self.rnn = nn.LSTM(1 + n_cov + emb, hidden, batch_first=True)
        self.mu = nn.Linear(hidden, 1)
        self.sigma = nn.Linear(hidden, 1)

    def forward(self, lagged, cov, item):
        e = self.item(item).unsqueeze(1).expand(-1, lagged.size(1), -1)
        x = torch.cat([lagged.unsqueeze(-1), cov, e], dim=-1)
        h, _ = self.rnn(x)
        return self.mu(h).squeeze(-1), F.softplus(self.sigma(h)).squeeze(-1) + 1e-3


class Step(nn.Module):
    context = 8

    def __init__(self):
        super().__init__()
        self.net = DemandRNN()

    def forward(self, demand, cov, item, observed):
        # demand, observed: [B, T]; cov: [B, T, 3], known in advance
        past, seen_past = demand[:, : self.context], observed[:, : self.context]
        n_obs = seen_past.sum(dim=1, keepdim=True).clamp(min=1)
        scale = (past * seen_past).sum(dim=1, keepdim=True) / n_obs + 1.0
        z = demand * observed / scale
        mu, sigma = self.net(z[:, :-1], cov[:, 1:], item)
        target, seen = z[:, 1:], observed[:, 1:]
        nll = torch.log(sigma) + 0.5 * ((target - mu) / sigma) ** 2
        return (nll * seen).sum() / seen.sum().clamp(min=1)


def example():
    g = torch.Generator().manual_seed(1)
    return (
        torch.rand(5, 15, generator=g) * 40,
        torch.randn(5, 15, 3, generator=g),
        torch.randint(0, 25, (5,), generator=g),
        (torch.rand(5, 15, generator=g) > 0.15).float(),
    )
