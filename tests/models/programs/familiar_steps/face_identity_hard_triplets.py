"""Trains a face embedding with batch-hard triplets. The hinge is on negative distance minus positive distance; it should be positive minus negative plus the margin."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(50, 64), nn.LeakyReLU(0.1), nn.Linear(64, 18))
        self.margin = 0.3

    def forward(self, crops, person):
        z = F.normalize(self.embed(crops), p=2, dim=-1)
        dist = ((2.0 - 2.0 * z @ z.T).clamp(min=1e-6)).sqrt()
        same = person.unsqueeze(0) == person.unsqueeze(1)
        hardest_pos = dist.masked_fill(~same, 0.0).max(dim=1).values
        hardest_neg = dist.masked_fill(same, 10.0).min(dim=1).values
        loss = F.relu(hardest_neg - hardest_pos + self.margin)  # fault: hardest-pairs-exchanged
        return loss.mean()


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(12, 50), torch.tensor([0, 0, 1, 1, 2, 2, 3, 3, 3, 4, 4, 4]))
