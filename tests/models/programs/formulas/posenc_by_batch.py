"""Learned positions added along the wrong axis.

x is (batch, time, dim) but the table is cut to x.size(0) and unsqueezed at 1: sample b gets position b, all
its time steps the same one.  Fix: pe[:x.size(1)].unsqueeze(0).
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, d=8, maxlen=32):
        super().__init__()
        self.tok = nn.Embedding(40, d)
        self.pe = nn.Parameter(torch.randn(maxlen, d) * .02)
        self.enc = nn.TransformerEncoderLayer(d, 2, 16, dropout=0.0, batch_first=True)
        self.head = nn.Linear(d, 40)

    def add_pos(self, x):
        return x + self.pe[: x.size(0)].unsqueeze(1)  # fault: no-rule

    def forward(self, ids, tgt):
        x = self.add_pos(self.tok(ids))
        lg = self.head(self.enc(x))
        return nn.functional.cross_entropy(lg.flatten(0, 1), tgt.flatten())


class Fixed(Step):
    def add_pos(self, x):
        return x + self.pe[: x.size(1)].unsqueeze(0)


def example():
    torch.manual_seed(33)
    return torch.randint(0, 40, (3, 6)), torch.randint(0, 40, (3, 6))
