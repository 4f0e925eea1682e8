"""Trains a plant embedding with the supervised contrastive loss, self comparisons left out and several positives per anchor."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(36, 30)
        self.proj = nn.Linear(30, 12)

    def forward(self, leaf, species):
        z = F.normalize(self.proj(torch.relu(self.enc(leaf))))
        n = z.shape[0]
        sim = z.matmul(z.transpose(0, 1)).div(0.1)
        itself = torch.eye(n, dtype=torch.bool)
        positives = species.view(-1, 1).eq(species.view(1, -1)) & ~itself
        log_denominator = sim.masked_fill(itself, float("-inf")).logsumexp(dim=1, keepdim=True)
        log_prob = sim - log_denominator
        count = positives.sum(1)
        per_anchor = (log_prob * positives.float()).sum(1) / count.clamp(min=1)
        has_positive = (count > 0).float()
        return -(per_anchor * has_positive).sum() / has_positive.sum().clamp(min=1.0)


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(13, 36), torch.tensor([0, 1, 1, 2, 2, 2, 3, 3, 4, 5, 5, 0, 1]))
