"""Ranknet listing.

CORRECT: RankNet with intended pairwise broadcasting and pair mask.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Scorer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.net(x)


class Step(nn.Module):
    """RankNet over the documents of a query; every ordered pair with rel_i > rel_j counts once."""

    def __init__(self, d=12, sigma=1.0):
        super().__init__()
        self.scorer = Scorer(d)
        self.sigma = sigma

    def forward(self, docs, relevance, n_docs):
        s = self.scorer(docs)                                   # (Q, N, 1)
        diff = s - s.transpose(1, 2)                            # s_i - s_j
        better = relevance.unsqueeze(2) > relevance.unsqueeze(1)
        real = torch.arange(docs.size(1), device=docs.device)[None] < n_docs[:, None]
        pair = (better & real.unsqueeze(2) & real.unsqueeze(1)).float()
        gain = (2.0 ** relevance.unsqueeze(2) - 2.0 ** relevance.unsqueeze(1)).abs()
        loss = F.softplus(-self.sigma * diff) * gain * pair
        return loss.sum() / pair.sum().clamp(min=1.0)


def example():
    g = torch.Generator().manual_seed(30)
    return (torch.randn(3, 7, 12, generator=g), torch.randint(0, 5, (3, 7), generator=g).float(),
            torch.tensor([7, 5, 6]))
