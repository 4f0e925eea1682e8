"""Trains a texture diffusion model with velocity prediction under a cosine schedule."""
import math

import torch
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.film = nn.Linear(2, 40)
        self.a = nn.Conv2d(1, 20, 3, padding=1)
        self.b = nn.Conv2d(20, 1, 3, padding=1)

    def forward(self, texture, u, eps):
        phase = 0.5 * math.pi * u.view(-1, 1, 1, 1)
        alpha, sigma = torch.cos(phase), torch.sin(phase)
        z = alpha * texture + sigma * eps
        v = alpha * eps - sigma * texture
        gain, shift = self.film(torch.cat([alpha, sigma], 1).flatten(1)).chunk(2, 1)
        h = self.a(z) * (1 + gain[..., None, None]) + shift[..., None, None]
        guess = self.b(torch.relu(h))
        return ((v - guess) ** 2).mean()


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(8, 1, 11, 9), torch.rand(8), torch.randn(8, 1, 11, 9))
