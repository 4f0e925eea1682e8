"""Trains a multi-label toxicity model and a solubility regression where missing assay results are -1. The missing assays are counted as negatives; they should be masked as they are in the average."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, assays=12):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(70, 32), nn.ReLU())
        self.tox = nn.Linear(32, assays)
        self.sol = nn.Linear(32, 1)

    def forward(self, fingerprint, results, solubility):
        h = self.shared(fingerprint)
        measured = (results >= 0).float()
        bce = F.binary_cross_entropy_with_logits(self.tox(h), results.clamp(min=0.0), reduction="none")
        tox_loss = bce.sum() / measured.sum()  # fault: mean-over-padding
        sol_loss = F.mse_loss(self.sol(h).squeeze(-1), solubility)
        return tox_loss + 0.5 * sol_loss


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.rand(19, 70).round(), torch.randint(-1, 2, (19, 12)).float(), torch.randn(19))
