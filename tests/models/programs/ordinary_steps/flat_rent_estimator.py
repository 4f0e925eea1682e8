"""Trains a small MLP that estimates the monthly rent of a flat from tabular features. The prediction keeps its trailing axis of one, so subtracting the (B,) target broadcasts to a (B, B) matrix; it should be squeezed first."""
import torch
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(11, 32), nn.ReLU(),
            nn.Linear(32, 16), nn.ReLU(),
        )
        self.out = nn.Linear(16, 1)

    def forward(self, features, rent):
        h = self.body(features)
        predicted = self.out(h)  # fault: silent-broadcast-in-loss
        error = predicted - rent  # fault: silent-broadcast-in-loss
        return (error ** 2).mean()


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(24, 11), torch.randn(24))
