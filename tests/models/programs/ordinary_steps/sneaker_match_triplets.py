"""Trains an embedding of sneaker photos by batch-hard triplets over model identities. Positive and negative distance are swapped in the soft margin, so same models are pushed apart; it should be hardest_pos - hardest_neg."""
import torch
from torch import nn


def pairwise(e):
    sq = (e * e).sum(1)
    d2 = sq[:, None] + sq[None, :] - 2.0 * e @ e.T
    return (d2.clamp(min=0) + 1e-8).sqrt()


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, scale=4.0):
        super().__init__()
        self.scale = scale
        self.embed = nn.Sequential(nn.Linear(30, 48), nn.LeakyReLU(0.1), nn.Linear(48, 12))

    def forward(self, feats, identity):
        e = self.embed(feats)
        e = e / e.norm(dim=1, keepdim=True)
        dist = pairwise(e)
        same = identity[:, None] == identity[None, :]
        hardest_pos = torch.where(same, dist, torch.zeros_like(dist)).max(dim=1).values
        hardest_neg = torch.where(same, torch.full_like(dist, 1e4), dist).min(dim=1).values
        gap = hardest_neg - hardest_pos  # fault: hardest-pairs-exchanged
        return torch.log1p(torch.exp(self.scale * gap)).mean()


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(20, 30), torch.arange(20) % 5)
