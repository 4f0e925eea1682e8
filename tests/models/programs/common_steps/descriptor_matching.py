"""Descriptor matching.

MISTAKE (silent): F.normalize default dim=1 on (B,N,D) normalises over keypoints, not the descriptor axis.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class DescriptorHead(nn.Module):
    """Maps raw keypoint features (B, N, C) to unit-length descriptors (B, N, D)."""

    def __init__(self, c=18, d=12):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(c, 32), nn.ReLU(), nn.Linear(32, d))

    def forward(self, feats):
        desc = self.mlp(feats)
        return F.normalize(desc)  # fault: class-axis-position


class Step(nn.Module):
    def __init__(self, temperature=0.1):
        super().__init__()
        self.head = DescriptorHead()
        self.dustbin = nn.Parameter(torch.tensor(0.5))
        self.temperature = temperature

    def forward(self, feats0, feats1, match01):
        d0, d1 = self.head(feats0), self.head(feats1)
        sim = torch.einsum("bnd,bmd->bnm", d0, d1)
        bin_col = self.dustbin.expand(sim.size(0), sim.size(1), 1)
        scores = torch.cat([sim, bin_col], dim=2) / self.temperature
        logp = scores.log_softmax(dim=2)
        return F.nll_loss(logp.flatten(0, 1), match01.flatten())


def example():
    g = torch.Generator().manual_seed(36)
    return (torch.randn(3, 8, 18, generator=g), torch.randn(3, 10, 18, generator=g),
            torch.randint(0, 11, (3, 8), generator=g))
