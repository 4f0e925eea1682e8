"""Ordinal regression of age groups (CORAL): one shared score, K-1 thresholds.

CORRECT: unusual, and as it is meant.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class CoralHead(nn.Module):
    def __init__(self, d, n_ranks):
        super().__init__()
        self.score = nn.Linear(d, 1, bias=False)
        self.thresholds = nn.Parameter(torch.linspace(1.0, -1.0, n_ranks - 1))

    def forward(self, h):
        return self.score(h) + self.thresholds


class Step(nn.Module):
    def __init__(self, n_ranks=6):
        super().__init__()
        self.cnn = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )
        self.head = CoralHead(16, n_ranks)
        self.register_buffer("ranks", torch.arange(n_ranks - 1))

    def forward(self, face, age_group):
        logits = self.head(self.cnn(face))
        levels = (age_group.unsqueeze(1) > self.ranks).float()
        loss = -(F.logsigmoid(logits) * levels + (F.logsigmoid(logits) - logits) * (1 - levels)).sum(dim=1).mean()
        predicted = (logits > 0).sum(dim=1)
        mae = (predicted - age_group).abs().float().mean()
        return loss, mae


def example():
    g = torch.Generator().manual_seed(33)
    return torch.rand(5, 3, 14, 14, generator=g), torch.randint(0, 6, (5,), generator=g)
