"""Trains mortality, length of stay (of survivors only) and diagnoses together, with an unequal class weight and masks."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(11, 28, batch_first=True)
        self.heads = nn.Linear(28, 1 + 1 + 8)
        self.register_buffer("pos_weight", torch.tensor(6.0))

    def forward(self, vitals, died, days, diagnoses):
        _, h = self.rnn(vitals)
        death, stay, diag = self.heads(h[-1]).split([1, 1, 8], dim=1)
        mortality = F.binary_cross_entropy_with_logits(death.squeeze(1), died, pos_weight=self.pos_weight)
        survived = 1 - died
        sq = (stay.squeeze(1) - torch.log1p(days)).square()
        length = (sq * survived).sum() / survived.sum().clamp(min=1)
        coded = diagnoses != -1
        each = F.binary_cross_entropy_with_logits(diag, diagnoses.clamp(min=0).float(), reduction="none")
        phenotype = torch.where(coded, each, torch.zeros_like(each)).sum() / coded.sum().clamp(min=1)
        return mortality + 0.3 * length + phenotype


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(13, 24, 11), (torch.rand(13) < 0.3).float(), torch.rand(13) * 20, torch.randint(-1, 2, (13, 8)))
