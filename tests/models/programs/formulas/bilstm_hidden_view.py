"""Sentence classifier on a bidirectional LSTM: h_n viewed as (batch, 2*hidden) without a transpose.

h_n is (2, B, H); the view puts two neighbouring sentences of one direction in a row.  Fix: transpose(0, 1) first.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(25, 6)
        self.rnn = nn.LSTM(6, 7, bidirectional=True, batch_first=True)
        self.o = nn.Linear(14, 3)

    def last(self, hn):
        return hn.contiguous().view(hn.size(1), -1)

    def forward(self, ids, y):
        _, (hn, _) = self.rnn(self.e(ids))
        return nn.functional.cross_entropy(self.o(self.last(hn)), y)  # fault: class-axis-position


class Fixed(Step):
    def last(self, hn):
        return hn.transpose(0, 1).reshape(hn.size(1), -1)


def example():
    torch.manual_seed(42)
    return torch.randint(0, 25, (4, 5)), torch.tensor([0, 1, 2, 0])
