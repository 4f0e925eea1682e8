"""Ordinal retinopathy.

CORRECT: CORAL ordinal regression with cumulative targets, threshold 0 on logits.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Coral(nn.Module):
    """CORAL: one shared score, K-1 thresholds."""

    def __init__(self, d, k):
        super().__init__()
        self.score = nn.Linear(d, 1, bias=False)
        self.bias = nn.Parameter(torch.linspace(1.0, -1.0, k - 1))

    def forward(self, h):
        return self.score(h) + self.bias     # (B, 1) + (K-1,)


class Step(nn.Module):
    """Grades 0..4 of diabetic retinopathy, encoded as 'grade > k' for k = 0..3."""

    def __init__(self, grades=5):
        super().__init__()
        self.k = grades
        self.cnn = nn.Sequential(
            nn.Conv2d(3, 12, 3, 2), nn.ReLU(), nn.Conv2d(12, 20, 3, 2), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )
        self.coral = Coral(20, grades)

    def forward(self, fundus, grade):
        logits = self.coral(self.cnn(fundus))
        levels = (grade[:, None] > torch.arange(self.k - 1, device=grade.device)).to(logits.dtype)
        loss = F.binary_cross_entropy_with_logits(logits, levels, reduction="none").sum(dim=1).mean()
        pred = (logits > 0).sum(dim=1)
        mae = (pred - grade).abs().float().mean()
        return loss, mae


def example():
    g = torch.Generator().manual_seed(47)
    return torch.rand(6, 3, 15, 15, generator=g), torch.randint(0, 5, (6,), generator=g)
