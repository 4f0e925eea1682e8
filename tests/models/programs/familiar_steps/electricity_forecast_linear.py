"""Trains a linear forecaster over the time axis with per-series normalisation by the history's statistics."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, history=36, horizon=12, channels=5):
        super().__init__()
        self.over_time = nn.Linear(history, horizon)
        self.gain = nn.Parameter(torch.ones(channels))
        self.offset = nn.Parameter(torch.zeros(channels))

    def forward(self, past, future, observed):
        mean = past.mean(dim=1, keepdim=True).detach()
        scale = past.std(dim=1, keepdim=True).detach() + 1e-4
        x = (past - mean) / scale * self.gain + self.offset
        y = self.over_time(x.transpose(1, 2)).transpose(1, 2)
        goal = (future - mean) / scale
        huber = F.huber_loss(y, goal, reduction="none", delta=2.0)
        keep = observed.float()
        return (huber * keep).sum() / keep.sum().clamp(min=1)


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(8, 36, 5) * 10 + 50, torch.randn(8, 12, 5) * 10 + 50, torch.rand(8, 12, 5) > 0.1)
