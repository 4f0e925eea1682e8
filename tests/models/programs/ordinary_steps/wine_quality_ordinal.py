"""Trains an ordinal regression of wine quality grades with cumulative logits and ordered cut points."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, grades=6):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(12, 20), nn.SiLU(), nn.Linear(20, 1))
        self.first = nn.Parameter(torch.tensor([-2.0]))
        self.gaps = nn.Parameter(torch.zeros(grades - 2))

    def cuts(self):
        steps = torch.cat([self.first, F.softplus(self.gaps)])
        return torch.cumsum(steps, dim=0)

    def forward(self, x, grade):
        cuts = self.cuts()
        logits = self.score(x) - cuts
        ranks = torch.arange(cuts.shape[0], device=x.device)
        exceeds = (grade.unsqueeze(1) > ranks).to(logits.dtype)
        per_cut = F.binary_cross_entropy_with_logits(logits, exceeds, reduction="none")
        return per_cut.sum(dim=1).mean()


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(21, 12), torch.randint(0, 6, (21,)))
