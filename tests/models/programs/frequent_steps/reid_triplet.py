"""Person re-identification: batch-hard triplets with the soft margin.

CORRECT: unusual, and as it is meant.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


def pairwise_distances(e):
    sq = e.pow(2).sum(dim=1)
    d2 = sq[:, None] + sq[None, :] - 2.0 * e @ e.t()
    return d2.clamp(min=1e-12).sqrt()


class BatchHardTriplet(nn.Module):
    def forward(self, embeddings, ids):
        dist = pairwise_distances(embeddings)
        same = (ids[:, None] == ids[None, :]).float()
        hardest_pos = (dist * same).max(dim=1).values
        hardest_neg = (dist + 1e5 * same).min(dim=1).values
        return F.softplus(hardest_pos - hardest_neg).mean()


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(),
        )
        self.embed = nn.Linear(16, 12)
        self.triplet = BatchHardTriplet()

    def forward(self, crops, person_id):
        f = self.trunk(crops).mean(dim=(2, 3))
        return self.triplet(self.embed(f), person_id)


def example():
    g = torch.Generator().manual_seed(43)
    ids = torch.arange(4).repeat_interleave(3)
    return torch.rand(12, 3, 16, 12, generator=g), ids
