"""Trains a music recommender with the BPR loss of the next track against all sampled tracks. The difference is negative minus positive; it should be positive minus negative."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, n_users=60, n_tracks=150, dim=16):
        super().__init__()
        self.users = nn.Embedding(n_users, dim)
        self.tracks = nn.Embedding(n_tracks, dim)
        self.bias = nn.Embedding(n_tracks, 1)

    def forward(self, user, candidates, played):
        u = self.users(user).unsqueeze(2)
        items = self.tracks(candidates)
        scores = torch.bmm(items, u).squeeze(2) + self.bias(candidates).squeeze(2)
        hit = scores.gather(1, played.unsqueeze(1))
        other = 1.0 - F.one_hot(played, candidates.shape[1]).to(scores.dtype)
        pair = F.logsigmoid(scores - hit)  # fault: label-scores-lowered
        bpr = -(pair * other).sum(1) / other.sum(1)
        reg = 1e-4 * (items.pow(2).sum(-1).mean() + u.pow(2).mean())
        return bpr.mean() + reg


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randint(0, 60, (14,)), torch.randint(0, 150, (14, 9)), torch.randint(0, 9, (14,)))
