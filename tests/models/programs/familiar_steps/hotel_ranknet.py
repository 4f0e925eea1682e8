"""Trains a hotel ranker with the pairwise RankNet loss over all pairs of valid hotels with different grades."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(22, 28), nn.GELU(), nn.Linear(28, 1))

    def forward(self, hotels, grade, present):
        s = self.f(hotels).squeeze(-1)
        diff = s[:, None, :] - s[:, :, None]
        better = grade[:, :, None] > grade[:, None, :]
        both = present[:, :, None] & present[:, None, :]
        pairs = (better & both).float()
        return (F.softplus(diff) * pairs).sum() / pairs.sum().clamp(min=1)


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    present = torch.arange(8)[None] < torch.tensor([8, 5, 6])[:, None]
    return (torch.randn(3, 8, 22), torch.randint(0, 4, (3, 8)), present)
