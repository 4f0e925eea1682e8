"""Trains BYOL on two augmentations of environmental sounds. The cosine similarity itself is returned as the loss, so views are pushed apart; it should be 2 - 2 * cosine."""
import torch
import torch.nn.functional as F
from torch import nn


def mlp(i, h, o):
    return nn.Sequential(nn.Linear(i, h), nn.LayerNorm(h), nn.ReLU(), nn.Linear(h, o))


def regression_loss(p, z):
    p = F.normalize(p, dim=-1, p=2)
    z = F.normalize(z, dim=-1, p=2)
    return 2 * (p * z).sum(dim=-1)  # fault: similarity-lowered


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.online = mlp(32, 40, 14)
        self.predictor = mlp(14, 20, 14)
        self.ema = mlp(32, 40, 14)

    def forward(self, clip_a, clip_b):
        views = torch.cat([clip_a, clip_b])
        swapped = torch.cat([clip_b, clip_a])
        p = self.predictor(self.online(views))
        z = self.ema(swapped).detach()
        return regression_loss(p, z).mean()  # fault: similarity-lowered


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(16, 32), torch.randn(16, 32))
