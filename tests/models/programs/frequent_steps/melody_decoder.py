"""Auto-regressive melody model (note tokens), decoder only.

MISTAKE (silent): keeps the future and hides the past under masked_fill(mask == 0); needs tril / == 0.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


def attention(q, k, v, mask=None):
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    return torch.matmul(scores.softmax(dim=-1), v)


def subsequent_mask(size):
    return torch.triu(torch.ones(1, size, size), diagonal=1)  # fault: inverted-mask


class DecoderLayer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.wq, self.wk, self.wv = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.norm = nn.LayerNorm(d)
        self.ff = nn.Sequential(nn.Linear(d, 2 * d), nn.ReLU(), nn.Linear(2 * d, d))

    def forward(self, x, mask):
        h = self.norm(x)
        x = x + attention(self.wq(h), self.wk(h), self.wv(h), mask)  # fault: inverted-mask
        return x + self.ff(x)


class Step(nn.Module):
    def __init__(self, n_notes=48, d=32):
        super().__init__()
        self.emb = nn.Embedding(n_notes, d)
        self.pos = nn.Embedding(32, d)
        self.layers = nn.ModuleList([DecoderLayer(d) for _ in range(2)])
        self.generator = nn.Linear(d, n_notes)

    def forward(self, notes):
        src, tgt = notes[:, :-1], notes[:, 1:]
        n = src.size(1)
        mask = subsequent_mask(n)
        x = self.emb(src) + self.pos(torch.arange(n))
        for layer in self.layers:
            x = layer(x, mask)
        logits = self.generator(x)
        return F.cross_entropy(logits.reshape(-1, logits.size(-1)), tgt.reshape(-1))


def example():
    g = torch.Generator().manual_seed(48)
    return (torch.randint(0, 48, (3, 13), generator=g),)
