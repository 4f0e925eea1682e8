"""Vicreg step.

CORRECT: variance over the batch per dimension, eps inside the root.
"""
from dataclasses import dataclass
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class VICRegConfig:
    sim: float = 25.0
    std: float = 25.0
    cov: float = 1.0
    dim: int = 22
    in_dim: int = 31


def variance_term(z):
    std = torch.sqrt(z.var(dim=0) + 1e-4)
    return F.relu(1.0 - std).mean()


def covariance_term(z):
    n, d = z.shape
    z = z - z.mean(dim=0)
    cov = (z.T @ z) / (n - 1)
    return (cov.pow(2).sum() - cov.diagonal().pow(2).sum()) / d


class Step(nn.Module):
    def __init__(self, cfg=VICRegConfig()):
        super().__init__()
        self.cfg = cfg
        self.f = nn.Sequential(nn.Linear(cfg.in_dim, 44), nn.BatchNorm1d(44), nn.ReLU(), nn.Linear(44, cfg.dim))

    def forward(self, xa, xb):
        za, zb = self.f(xa), self.f(xb)
        c = self.cfg
        return (
            c.sim * F.mse_loss(za, zb)
            + c.std * 0.5 * (variance_term(za) + variance_term(zb))
            + c.cov * (covariance_term(za) + covariance_term(zb))
        )


def example():
    torch.manual_seed(0)
    x = torch.randn(27, 31)
    return x + 0.2 * torch.randn_like(x), x + 0.2 * torch.randn_like(x)
