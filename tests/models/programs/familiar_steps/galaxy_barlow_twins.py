"""Trains a galaxy encoder with Barlow Twins: features standardised over the batch, cross-correlation towards the identity."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 40), nn.ReLU(), nn.Linear(40, 10))

    @staticmethod
    def standardise(z):
        return (z - z.mean(0)) / (z.std(0, unbiased=False) + 1e-5)

    def forward(self, a, b):
        za = self.standardise(self.encoder(a))
        zb = self.standardise(self.encoder(b))
        c = za.T @ zb / za.shape[0]
        eye = torch.eye(c.shape[0])
        on = (torch.diagonal(c) - 1).pow(2).sum()
        off = (c * (1 - eye)).pow(2).sum()
        return on + 5e-3 * off


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(27, 64), torch.randn(27, 64))
