"""Char gpt.

MISTAKE (silent): heads [B,H,T,D] reshaped without transpose(1,2), time and heads mixed.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.h = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim)
        self.register_buffer("mask", torch.tril(torch.ones(256, 256)).bool())

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).split(c, dim=2)
        q = q.view(b, t, self.h, c // self.h).transpose(1, 2)
        k = k.view(b, t, self.h, c // self.h).transpose(1, 2)
        v = v.view(b, t, self.h, c // self.h).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (c // self.h) ** -0.5
        att = att.masked_fill(~self.mask[:t, :t], float("-inf")).softmax(-1)
        y = (att @ v).reshape(b, t, c)  # fault: class-axis-position
        return self.proj(y)


class Step(nn.Module):
    def __init__(self, vocab=96, dim=64, layers=2):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(256, dim)
        self.attn = nn.ModuleList([SelfAttention(dim, 4) for _ in range(layers)])
        self.norms = nn.ModuleList([nn.LayerNorm(dim) for _ in range(layers)])
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        inp, tgt = ids[:, :-1], ids[:, 1:]
        x = self.tok(inp) + self.pos(torch.arange(inp.shape[1]))
        for ln, att in zip(self.norms, self.attn):
            x = x + att(ln(x))
        logits = self.head(x)
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), tgt.reshape(-1))


def example():
    torch.manual_seed(0)
    return (torch.randint(0, 96, (8, 49)),)
