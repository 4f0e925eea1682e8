"""Barlow twins.

CORRECT: unusual, and as it is meant.
"""
import torch
import torch.nn as nn


def off_diagonal(x):
    n, m = x.shape
    assert n == m
    return x.flatten()[:-1].view(n - 1, n + 1)[:, 1:].flatten()


class Step(nn.Module):
    """Self-supervised redundancy reduction between two augmented views."""

    def __init__(self, lambd=0.0051):
        super().__init__()
        self.lambd = lambd
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )
        self.projector = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 12))

    @staticmethod
    def standardize(z):
        return (z - z.mean(dim=0)) / (z.std(dim=0, unbiased=False) + 1e-5)

    def forward(self, view1, view2):
        z1 = self.standardize(self.projector(self.backbone(view1)))
        z2 = self.standardize(self.projector(self.backbone(view2)))
        c = z1.T @ z2 / view1.shape[0]
        on_diag = (torch.diagonal(c) - 1).pow(2).sum()
        off_diag = off_diagonal(c).pow(2).sum()
        return on_diag + self.lambd * off_diag


def example():
    g = torch.Generator().manual_seed(8)
    return torch.randn(8, 3, 16, 16, generator=g), torch.randn(8, 3, 16, 16, generator=g)
