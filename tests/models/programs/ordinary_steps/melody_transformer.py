"""Trains a causal transformer on note sequences. The logits are compared with the very tokens that went in at the same position; logits[:, :-1] should be compared with notes[:, 1:]."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class CausalBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        att = q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)
        keep = torch.ones(t, t, dtype=torch.bool).tril()
        att = att.masked_fill(~keep, float("-inf")).softmax(dim=-1)
        x = x + self.proj((att @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.ln2(x))


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, notes=48, dim=20, max_len=32):
        super().__init__()
        self.tok = nn.Embedding(notes, dim)
        self.pos = nn.Parameter(0.02 * torch.randn(max_len, dim))
        self.block = CausalBlock(dim, 2)
        self.head = nn.Linear(dim, notes)

    def forward(self, notes):
        h = self.tok(notes) + self.pos[: notes.size(1)]
        logits = self.head(self.block(h))
        return F.cross_entropy(logits.flatten(0, 1), notes.flatten())  # fault: target-in-prediction


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randint(0, 48, (5, 17)),)
