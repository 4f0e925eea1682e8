"""Credit default table.

MISTAKE (silent): target column leaks into the features.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class ResidualMLP(nn.Module):
    def __init__(self, d_in, width=32):
        super().__init__()
        self.inp = nn.Linear(d_in, width)
        self.hidden = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        h = F.relu(self.inp(x))
        h = h + F.relu(self.hidden(self.norm(h)))
        return self.out(h)[:, 0]


class Step(nn.Module):
    """rows: columns 0..10 are the features, the last column is the default flag (0/1)."""

    def __init__(self, n_columns=12):
        super().__init__()
        self.n_columns = n_columns
        self.net = ResidualMLP(n_columns)

    def forward(self, rows):
        target = rows[:, -1]  # fault: target-in-prediction
        logits = self.net(rows)  # fault: target-in-prediction
        loss = F.binary_cross_entropy_with_logits(logits, target)
        hits = ((logits > 0).float() == target).float().mean()
        return loss, hits


def example():
    g = torch.Generator().manual_seed(54)
    x = torch.randn(10, 11, generator=g)
    y = (torch.rand(10, 1, generator=g) < 0.4).float()
    return (torch.cat([x, y], dim=1),)
