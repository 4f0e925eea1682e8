"""Trains a dense crater detector with the focal loss, normalised by the number of positive cells."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 12, 3, stride=2, padding=1)
        self.cls = nn.Conv2d(12, 3, 3, padding=1)
        nn.init.constant_(self.cls.bias, -2.0)

    def forward(self, dem, heat):
        logits = self.cls(F.relu(self.stem(dem)))
        ce = F.binary_cross_entropy_with_logits(logits, heat, reduction="none")
        p_t = torch.exp(-ce)
        alpha_t = 0.25 * heat + 0.75 * (1 - heat)
        focal = alpha_t * (1 - p_t) ** 2 * ce
        return focal.sum() / heat.sum().clamp(min=1)


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(5, 1, 22, 26), (torch.rand(5, 3, 11, 13) < 0.05).float())
