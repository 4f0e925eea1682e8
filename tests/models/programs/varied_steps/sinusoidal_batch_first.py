"""Sentiment transformer with a sinusoidal table registered as buffer [max_len, 1, d] and added to batch-first embeddings.

MISTAKE (silent): the table is cut to x.size(0) rows, which is the batch here, so each sentence gets one constant vector and the words no position;
pe[:T] has to go along dim 1.
"""
import math
import torch
from torch import nn


class PositionalEncoding(nn.Module):
    def __init__(self, d, max_len=64):
        super().__init__()
        pos = torch.arange(max_len).unsqueeze(1)
        div = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
        pe = torch.zeros(max_len, 1, d)
        pe[:, 0, 0::2] = torch.sin(pos * div)
        pe[:, 0, 1::2] = torch.cos(pos * div)
        self.register_buffer("pe", pe)


class Step(nn.Module):
    def __init__(self, vocab=90, d=16):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.posenc = PositionalEncoding(d)
        self.layer = nn.TransformerEncoderLayer(d, 2, 32, dropout=0.0, batch_first=True)
        self.out = nn.Linear(d, 1)
        self.d = d

    def add_pos(self, x):
        return x + self.posenc.pe[: x.size(0)]  # fault: silent-broadcast-in-loss

    def forward(self, ids, sentiment):
        x = self.add_pos(self.emb(ids) * math.sqrt(self.d))  # fault: silent-broadcast-in-loss
        x = self.layer(x).mean(1)
        return nn.functional.binary_cross_entropy_with_logits(self.out(x).squeeze(-1), sentiment)


class Fixed(Step):
    def add_pos(self, x):
        return x + self.posenc.pe[: x.size(1)].transpose(0, 1)


def example():
    torch.manual_seed(13)
    return torch.randint(0, 90, (4, 11)), torch.tensor([0., 1., 1., 0.])


OPEN = [{0: "batch"}, {0: "batch"}]
