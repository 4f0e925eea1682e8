"""Ordinal regression of 1..5 stars with shared weights and ordered thresholds.

CORRECT: four binary targets 'rating > k' made by comparing (B, 1) with (4,); the loss with logits takes them as float. The thresholds
are ordered by the cumulative sum of softplus.
"""
import torch
from torch import nn
from torch.nn import functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.Embedding(120, 12)
        self.f = nn.Linear(12, 1)
        self.first = nn.Parameter(torch.tensor([-1.5]))
        self.gaps = nn.Parameter(torch.zeros(3))

    def forward(self, words, stars):
        latent = self.f(self.bag(words).mean(dim=1))
        cuts = torch.cat([self.first, self.first + torch.cumsum(F.softplus(self.gaps), 0)])
        logits = latent - cuts
        levels = (stars[:, None] > torch.arange(1, 5)).to(logits.dtype)
        mae = ((logits > 0).sum(1) + 1 - stars).abs().float().mean()
        return F.binary_cross_entropy_with_logits(logits, levels), mae


def example():
    torch.manual_seed(91)
    return torch.randint(0, 120, (6, 11)), torch.randint(1, 6, (6,))


OPEN = [{0: "reviews"}, {0: "reviews"}]
