"""Trains an encoder of cell images with BYOL. The vectors are normalised over the batch (axis 0); they should be over their own features (axis 1)."""
import torch
import torch.nn.functional as F
from torch import nn


def unit(v):
    return v / v.norm(p=2, dim=0, keepdim=True).clamp(min=1e-6)  # fault: reduction-over-batch-axis


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.online = nn.Sequential(nn.Flatten(), nn.Linear(2 * 15 * 15, 40), nn.ReLU(), nn.Linear(40, 16))
        self.ema = nn.Sequential(nn.Flatten(), nn.Linear(2 * 15 * 15, 40), nn.ReLU(), nn.Linear(40, 16))
        self.ema.load_state_dict(self.online.state_dict())
        self.ema.requires_grad_(False)
        self.predictor = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 16))

    def half(self, a, b):
        p = unit(self.predictor(self.online(a)))
        with torch.no_grad():
            t = unit(self.ema(b))
        return (2 - 2 * (p * t).sum(dim=1)).mean()

    def forward(self, view1, view2):
        return self.half(view1, view2) + self.half(view2, view1)  # fault: reduction-over-batch-axis


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(12, 2, 15, 15), torch.randn(12, 2, 15, 15))
