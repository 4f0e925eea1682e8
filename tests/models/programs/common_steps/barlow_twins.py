"""Barlow twins.

CORRECT: Barlow Twins: standardisation over the batch axis, D x D cross-correlation.
"""
import torch
import torch.nn as nn


def off_diagonal(m):
    n, _ = m.shape
    return m.flatten()[:-1].view(n - 1, n + 1)[:, 1:].flatten()


class Step(nn.Module):
    def __init__(self, feat=30, proj=12, lambd=5e-3):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(feat, 40), nn.ReLU(), nn.Linear(40, 24))
        self.projector = nn.Sequential(nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, proj, bias=False))
        self.lambd = lambd

    @staticmethod
    def standardize(z):
        # every feature gets zero mean and unit variance *along the batch*
        return (z - z.mean(dim=0)) / (z.var(dim=0, unbiased=False) + 1e-5).sqrt()

    def forward(self, y1, y2):
        z1 = self.standardize(self.projector(self.backbone(y1)))
        z2 = self.standardize(self.projector(self.backbone(y2)))
        c = z1.T @ z2 / z1.size(0)
        on_diag = (torch.diagonal(c) - 1).pow(2).sum()
        return on_diag + self.lambd * off_diagonal(c).pow(2).sum()


def example():
    torch.manual_seed(50)
    y = torch.randn(16, 30)
    return y + 0.1 * torch.randn(16, 30), y + 0.1 * torch.randn(16, 30)
