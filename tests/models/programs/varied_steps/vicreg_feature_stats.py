"""VICReg: invariance, variance and covariance terms on two views.

CORRECT: variance and covariance are over the batch axis (dim=0) on purpose, as they are statistics of the features; the diagonal of the covariance is left out by a mask of shape (D, D).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, d=9):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, d))
        self.register_buffer("off", 1.0 - torch.eye(d))

    def spread(self, z):
        n, d = z.shape
        std = torch.sqrt(z.var(dim=0) + 1e-4)
        zc = z - z.mean(dim=0)
        cov = zc.T @ zc / (n - 1)
        return F.relu(1 - std).mean(), (cov * self.off).square().sum() / d

    def forward(self, a, b):
        za, zb = self.net(a), self.net(b)
        va, ca = self.spread(za)
        vb, cb = self.spread(zb)
        return 25 * F.mse_loss(za, zb) + 25 * (va + vb) + ca + cb


def example():
    torch.manual_seed(16)
    x = torch.randn(8, 16)
    return x + 0.1 * torch.randn(8, 16), x + 0.1 * torch.randn(8, 16)
