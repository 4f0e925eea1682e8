"""Batch hard triplet.

MISTAKE (silent): sqrt of the exact zeros on the diagonal has infinite gradient, gives NaN; needs eps inside.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


def pairwise_distances(x):
    diff = x.unsqueeze(1) - x.unsqueeze(0)
    d2 = diff.pow(2).sum(dim=-1)
    return torch.sqrt(d2)  # fault: infinite-gradient


class Step(nn.Module):
    """Batch-all softplus triplet loss as used for person re-identification."""

    def __init__(self, n_features=50, dim=20):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_features, 64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, x, pid):
        emb = self.net(x)
        dist = pairwise_distances(emb)  # fault: infinite-gradient
        same = (pid[:, None] == pid[None, :]).float()
        hardest_pos = (dist * same).max(dim=1).values
        hardest_neg = (dist + 1e5 * same).min(dim=1).values
        loss = F.softplus(hardest_pos - hardest_neg).mean()
        spread = (dist * (1 - same)).sum() / (1 - same).sum()
        return loss + 0.001 * (1.0 / (1.0 + spread))


def example():
    torch.manual_seed(0)
    return torch.randn(16, 50), torch.arange(16) // 4
