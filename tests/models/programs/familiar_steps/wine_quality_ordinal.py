"""Trains an ordinal regression (cumulative logits with ordered cut points) of wine quality in six grades."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, grades=6):
        super().__init__()
        self.grades = grades
        self.mlp = nn.Sequential(nn.Linear(11, 24), nn.ELU(), nn.Linear(24, 1))
        self.first_cut = nn.Parameter(torch.tensor(-2.0))
        self.gaps = nn.Parameter(torch.zeros(grades - 2))

    def cut_points(self):
        steps = F.softplus(self.gaps)
        rest = self.first_cut + torch.cumsum(steps, dim=0)
        return torch.cat([self.first_cut.view(1), rest])

    def forward(self, chem, quality):
        score = self.mlp(chem)
        logits = score - self.cut_points()
        ranks = torch.arange(self.grades - 1)
        above = (quality[:, None] > ranks).float()
        per_cut = F.binary_cross_entropy_with_logits(logits, above, reduction="none")
        return per_cut.sum(1).mean()


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(18, 11), torch.randint(0, 6, (18,)))
