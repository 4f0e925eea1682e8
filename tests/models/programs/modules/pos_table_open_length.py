"""Masked-span denoiser with learned positions; the sequence length is open.

Positions 0..T-1 index a table of 32 rows.  Nothing limits T: a batch with 33 tokens
is an out-of-range lookup.  Fix: clamp the positions to the table.
"""
import torch
import torch.nn.functional as F
from torch import nn

OPEN = [{0: "batch", 1: "time"}, {0: "batch", 1: "time"}]


class Step(nn.Module):
    MAX = 32

    def __init__(self, vocab=60, d=12):
        super().__init__()
        self.tok = nn.Embedding(vocab, d)
        self.pos = nn.Embedding(self.MAX, d)
        self.ff = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, vocab))

    def positions(self, ids):
        return torch.ones_like(ids).cumsum(1) - 1

    def forward(self, ids, labels):
        h = self.tok(ids) + self.pos(self.positions(ids))  # fault: no-rule
        return F.cross_entropy(self.ff(h).flatten(0, 1), labels.flatten())


class Fixed(Step):
    def positions(self, ids):
        return (torch.ones_like(ids).cumsum(1) - 1).clamp(max=self.MAX - 1)


def example():
    torch.manual_seed(36)
    return torch.randint(0, 60, (3, 20)), torch.randint(0, 60, (3, 20))
