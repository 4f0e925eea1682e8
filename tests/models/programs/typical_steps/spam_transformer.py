"""Transformer encoder for spam detection with sinusoidal positions.

MISTAKE (silent): the encoding is sliced by x.size(0), the batch, and broadcast over time; with batch_first it must go along x.size(1).
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=64):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div)
        pe[:, 0, 1::2] = torch.cos(position * div)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[: x.size(0)]  # fault: silent-broadcast-in-loss


class FixedPositionalEncoding(PositionalEncoding):
    def forward(self, x):
        return x + self.pe[: x.size(1)].transpose(0, 1)


class Step(nn.Module):
    encoding = PositionalEncoding

    def __init__(self, vocab=64, d_model=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, d_model)
        self.pos = self.encoding(d_model)
        self.attn = nn.MultiheadAttention(d_model, 2, batch_first=True)
        self.norm = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, 32), nn.ReLU(), nn.Linear(32, d_model))
        self.fc = nn.Linear(d_model, 1)

    def forward(self, ids, spam):
        x = self.pos(self.embed(ids) * 4.0)
        a, _ = self.attn(x, x, x, need_weights=False)
        x = self.norm(x + a)
        x = x + self.ff(x)
        return F.binary_cross_entropy_with_logits(self.fc(x.mean(dim=1)).squeeze(1), spam)


class Fixed(Step):
    encoding = FixedPositionalEncoding


def example():
    g = torch.Generator().manual_seed(1)
    return (torch.randint(0, 64, (6, 12), generator=g), torch.tensor([0.0, 1.0, 1.0, 0.0, 0.0, 1.0]))


OPEN = [{0: "batch"}, {0: "batch"}]
