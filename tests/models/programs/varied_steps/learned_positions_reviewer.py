"""Text classifier with learnt positions, one row for each of the 12 positions of a fixed-length input.

MISTAKE (fails): the positions run from 1 to 12 but the table has the rows 0 to 11, so the last look-up is always out of range; arange(12).
"""
import torch
from torch import nn

MAX_LEN = 12


class Step(nn.Module):
    def __init__(self, vocab=64, d=16, n_cls=4):
        super().__init__()
        self.word = nn.Embedding(vocab, d)
        self.position = nn.Embedding(MAX_LEN, d)
        self.enc = nn.TransformerEncoderLayer(d, nhead=4, dim_feedforward=32, dropout=0.0, batch_first=True)
        self.fc = nn.Linear(d, n_cls)

    def positions(self):
        return torch.arange(1, MAX_LEN + 1)  # fault: index-out-of-range

    def forward(self, tokens, label):
        x = self.word(tokens) + self.position(self.positions())  # fault: index-out-of-range
        x = self.enc(x)[:, 0]
        return nn.functional.cross_entropy(self.fc(x), label)


class Fixed(Step):
    def positions(self):
        return torch.arange(MAX_LEN)


def example():
    torch.manual_seed(7)
    return torch.randint(0, 64, (4, MAX_LEN)), torch.randint(0, 4, (4,))


FAILS = True
