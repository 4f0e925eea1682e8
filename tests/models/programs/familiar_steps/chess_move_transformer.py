"""Trains a one-layer transformer that predicts the next chess move. The causal mask is inverted (it hides the past and shows the future); it should be tril."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.h = heads
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).split(d, dim=2)
        q = q.view(b, t, self.h, d // self.h).transpose(1, 2)
        k = k.view(b, t, self.h, d // self.h).transpose(1, 2)
        v = v.view(b, t, self.h, d // self.h).transpose(1, 2)
        att = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        allowed = torch.triu(torch.ones(t, t))  # fault: inverted-mask
        att = att.masked_fill(allowed == 0, float("-inf")).softmax(dim=-1)  # fault: inverted-mask
        y = (att @ v).transpose(1, 2).reshape(b, t, d)
        return self.proj(y)


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, moves=90, d=32, max_len=40):
        super().__init__()
        self.tok = nn.Embedding(moves, d)
        self.pos = nn.Embedding(max_len, d)
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = CausalAttention(d, 4)
        self.ff = nn.Sequential(nn.Linear(d, 64), nn.GELU(), nn.Linear(64, d))
        self.head = nn.Linear(d, moves, bias=False)

    def forward(self, game):
        inp, target = game[:, :-1], game[:, 1:]
        x = self.tok(inp) + self.pos(torch.arange(inp.shape[1]))
        x = x + self.attn(self.ln1(x))
        x = x + self.ff(self.ln2(x))
        return F.cross_entropy(self.head(x).flatten(0, 1), target.flatten())


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randint(0, 90, (6, 24)),)
