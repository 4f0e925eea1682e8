"""Factorization machine for click prediction on 6 categorical fields with one shared embedding table.

CORRECT: the pairwise term is half of (sum over fields) squared minus the sum of squares, reduced over fields (dim 1) and then over factors; each field's ids are
moved by its offset into the shared table.
"""
import torch
from torch import nn


class Step(nn.Module):
    SIZES = (10, 4, 7, 20, 3, 12)

    def __init__(self, k=6):
        super().__init__()
        n = sum(self.SIZES)
        self.w, self.v, self.b = nn.Embedding(n, 1), nn.Embedding(n, k), nn.Parameter(torch.zeros(1))
        sizes = torch.tensor(self.SIZES)
        self.register_buffer("offset", sizes.cumsum(0) - sizes)

    def forward(self, fields, click):
        ids = fields + self.offset
        e = self.v(ids)                                   # [B, F, K]
        pair = 0.5 * (e.sum(1).pow(2) - e.pow(2).sum(1)).sum(1)
        z = self.w(ids).sum(1).squeeze(-1) + pair + self.b
        return nn.functional.binary_cross_entropy_with_logits(z, click.float())


def example():
    torch.manual_seed(117)
    f = torch.stack([torch.randint(0, s, (6,)) for s in Step.SIZES], 1)
    return f, torch.randint(0, 2, (6,))


OPEN = [{0: "batch"}, {0: "batch"}]
