"""Barlow step.

CORRECT: Barlow Twins standardises every feature over the batch.
"""
import torch
import torch.nn as nn


def off_diagonal(c):
    n = c.shape[0]
    return c * (1 - torch.eye(n, device=c.device))


class Step(nn.Module):
    def __init__(self, d_in=45, d=18, lambd=5e-3):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(d_in, 40), nn.ReLU())
        self.projector = nn.Sequential(nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, d))
        self.lambd = lambd

    def forward(self, y1, y2):
        z1 = self.projector(self.backbone(y1))
        z2 = self.projector(self.backbone(y2))
        z1 = (z1 - z1.mean(0)) / (z1.std(0) + 1e-6)
        z2 = (z2 - z2.mean(0)) / (z2.std(0) + 1e-6)
        c = z1.T @ z2 / z1.shape[0]
        on_diag = (torch.diagonal(c) - 1).pow(2).sum()
        off_diag = off_diagonal(c).pow(2).sum()
        return on_diag + self.lambd * off_diag


def example():
    torch.manual_seed(0)
    x = torch.randn(28, 45)
    return x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)
