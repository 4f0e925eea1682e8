"""Trains a quantile regression of the electric load with the pinball loss. The error is prediction minus target, which makes every quantile q learn 1 - q; it should be target minus prediction."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(9, 48)
        self.out = nn.Linear(48, 3)
        self.register_buffer("q", torch.tensor([0.05, 0.5, 0.95]))

    def forward(self, x, load):
        h = torch.tanh(self.trunk(x))
        pred = self.out(h)
        e = pred - load.unsqueeze(1)  # fault: quantiles-mirrored
        pinball = torch.max(self.q * e, (self.q - 1) * e)
        return pinball.sum(dim=1).mean()


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(20, 9), torch.randn(20))
