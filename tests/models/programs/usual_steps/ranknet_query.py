"""Ranknet query.

CORRECT: [N,1]-[1,N] is the intended matrix of all document pairs.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Scorer(nn.Module):
    def __init__(self, n_feat=27):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_feat, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


class Step(nn.Module):
    """RankNet on the documents of one query."""

    def __init__(self, sigma=1.0):
        super().__init__()
        self.scorer = Scorer()
        self.sigma = sigma

    def forward(self, docs, relevance):
        s = self.scorer(docs)
        s_diff = s.unsqueeze(1) - s.unsqueeze(0)
        r_diff = relevance.unsqueeze(1) - relevance.unsqueeze(0)
        better = (r_diff > 0).float()
        pair_loss = F.softplus(-self.sigma * s_diff)
        return (pair_loss * better).sum() / better.sum().clamp(min=1.0)


def example():
    torch.manual_seed(0)
    return torch.randn(17, 27), torch.randint(0, 5, (17,)).float()
