"""Trains a panel of toxicity assays in which missing measurements are NaN and every assay counts alike."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, assays=12):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, assays))

    def forward(self, fingerprint, outcome):
        logits = self.net(fingerprint)
        missing = torch.isnan(outcome)
        filled = torch.where(missing, torch.zeros_like(outcome), outcome)
        raw = F.binary_cross_entropy_with_logits(logits, filled, reduction="none")
        raw = raw.masked_fill(missing, 0.0)
        measured = (~missing).sum(dim=0).clamp(min=1)
        per_assay = raw.sum(dim=0) / measured
        return per_assay.mean()


def example():
    """A tuple of tensors, with realistic dtypes."""
    y = (torch.rand(29, 12) < 0.4).float()
    y[torch.rand(29, 12) < 0.3] = float("nan")
    return ((torch.rand(29, 64) < 0.5).float(), y)
