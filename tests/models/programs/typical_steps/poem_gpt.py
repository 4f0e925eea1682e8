"""Small decoder-only transformer for poems.

MISTAKE (silent): the causal mask is inverted: the past (tril == 1) is filled with -1e9; fill where tril == 0.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, dim=24, heads=3):
        super().__init__()
        self.heads = heads
        self.ln1 = nn.LayerNorm(dim)
        self.ln2 = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def split(self, x):
        q, k, v = self.qkv(self.ln1(x)).chunk(3, dim=-1)
        return [t.reshape(t.size(0), t.size(1), self.heads, -1).transpose(1, 2) for t in (q, k, v)]

    def merge(self, x, att, v):
        y = (att @ v).transpose(1, 2).flatten(2)
        x = x + self.proj(y)
        return x + self.mlp(self.ln2(x))


class Step(nn.Module):
    def __init__(self, vocab=50, dim=24, max_len=16):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(max_len, dim)
        self.block = Block(dim)
        self.head = nn.Linear(dim, vocab, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(max_len, max_len)))

    def forward(self, idx):
        inp, target = idx[:, :-1], idx[:, 1:]
        T = inp.size(1)
        x = self.tok(inp) + self.pos(torch.arange(T))
        q, k, v = self.block.split(x)
        att = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        att = att.masked_fill(self.tril[:T, :T] == 1, -1e9)  # fault: inverted-mask
        x = self.block.merge(x, att.softmax(dim=-1), v)
        return F.cross_entropy(self.head(x).flatten(0, 1), target.flatten())


class Fixed(Step):
    def forward(self, idx):
        inp, target = idx[:, :-1], idx[:, 1:]
        T = inp.size(1)
        x = self.tok(inp) + self.pos(torch.arange(T))
        q, k, v = self.block.split(x)
        att = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        att = att.masked_fill(self.tril[:T, :T] == 0, -1e9)
        x = self.block.merge(x, att.softmax(dim=-1), v)
        return F.cross_entropy(self.head(x).flatten(0, 1), target.flatten())


def example():
    g = torch.Generator().manual_seed(1)
    return (torch.randint(0, 50, (5, 13), generator=g),)


OPEN = [{0: "batch"}]
