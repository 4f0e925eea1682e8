"""Trains a flow matching model of terrain profiles where time one is pure noise, so the velocity is noise minus data."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, n=30):
        super().__init__()
        self.freqs = nn.Parameter(torch.randn(6), requires_grad=False)
        self.l1 = nn.Linear(n + 12, 64)
        self.l2 = nn.Linear(64, n)

    def velocity(self, x, t):
        ang = t * self.freqs
        return self.l2(F.silu(self.l1(torch.cat([x, ang.sin(), ang.cos()], dim=1))))

    def forward(self, profile, noise, t):
        t = t.unsqueeze(-1)
        x_t = torch.lerp(profile, noise, t)
        target = noise - profile
        return F.mse_loss(self.velocity(x_t, t), target)


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(16, 30), torch.randn(16, 30), torch.rand(16))
