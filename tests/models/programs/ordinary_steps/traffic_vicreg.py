"""Trains a self-supervised encoder of traffic sensor windows with variance, invariance and covariance terms. The variance hinge is relu(std - 1), which lets the embedding collapse; it should be relu(1 - std)."""
import torch
import torch.nn.functional as F
from torch import nn


def variance_term(z):
    std = torch.sqrt(z.var(dim=0) + 1e-4)
    return F.relu(std - 1.0).mean()  # fault: spread-lowered


def covariance_term(z):
    n, d = z.shape
    zc = z - z.mean(dim=0)
    cov = zc.T @ zc / (n - 1)
    off = cov * (1 - torch.eye(d))
    return off.pow(2).sum() / d


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(24, 36), nn.ReLU(), nn.Linear(36, 36), nn.ReLU())
        self.expander = nn.Linear(36, 15)

    def forward(self, window_a, window_b):
        za = self.expander(self.encoder(window_a))
        zb = self.expander(self.encoder(window_b))
        inv = F.mse_loss(za, zb)
        var = variance_term(za) + variance_term(zb)  # fault: spread-lowered
        cov = covariance_term(za) + covariance_term(zb)
        return 25.0 * inv + 25.0 * var + cov


def example():
    """A tuple of tensors, with realistic dtypes."""
    base = torch.randn(31, 24)
    return (base + 0.1 * torch.randn(31, 24), base + 0.1 * torch.randn(31, 24))
