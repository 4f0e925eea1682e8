"""Trains a drum loop diffusion model in the v parametrisation on a cosine schedule. The target is alpha * x0 - sigma * noise; it should be alpha * noise - sigma * x0."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, channels=2):
        super().__init__()
        self.pre = nn.Conv1d(channels + 1, 18, 5, padding=2)
        self.mid = nn.Conv1d(18, 18, 5, padding=2)
        self.post = nn.Conv1d(18, channels, 5, padding=2)

    def net(self, x, t):
        level = t[:, None, None].expand(-1, 1, x.shape[-1])
        h = F.gelu(self.pre(torch.cat([x, level], dim=1)))
        return self.post(h + F.gelu(self.mid(h)))

    def forward(self, loop, u, noise):
        angle = u * math.pi / 2
        alpha = torch.cos(angle)[:, None, None]
        sigma = torch.sin(angle)[:, None, None]
        noisy = alpha * loop + sigma * noise
        v = alpha * loop - sigma * noise  # fault: velocity-misbuilt
        return torch.mean((self.net(noisy, u) - v) ** 2)


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(5, 2, 64), torch.rand(5), torch.randn(5, 2, 64))
