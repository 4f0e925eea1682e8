"""Trains an MLP to regress log house prices. The prediction is (N, 1) and the target (N), so the difference broadcasts to (N, N); the prediction should be squeezed."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(13, 32), nn.ReLU(),
            nn.Linear(32, 16), nn.ReLU(),
            nn.Linear(16, 1),
        )

    def forward(self, features, price):
        target = torch.log1p(price)
        pred = self.net(features)
        err = pred - target  # fault: silent-broadcast-in-loss
        return err.pow(2).mean()


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(24, 13), torch.rand(24) * 500.0)
