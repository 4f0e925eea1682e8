"""Trains a pairwise ranker of job advertisements where the second argument is the better one, hence a target of minus one."""
import torch
import torch.nn as nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.scorer = nn.Sequential(nn.Linear(17, 30), nn.ELU(), nn.Linear(30, 1))
        self.rank_loss = nn.MarginRankingLoss(margin=0.5)

    def forward(self, ignored_ads, clicked_ad):
        worse = self.scorer(ignored_ads).squeeze(-1)
        better = self.scorer(clicked_ad).expand(-1, worse.size(1))
        target = -torch.ones_like(worse)
        return self.rank_loss(worse, better, target)


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(11, 6, 17), torch.randn(11, 17))
