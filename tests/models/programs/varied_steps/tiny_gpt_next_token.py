"""Pre-training step of a two-layer causal transformer language model.

MISTAKE (silent): the logits at position t are scored against the token at position t, which the model sees as its input;
logits[:, :-1] must be scored against ids[:, 1:].
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(self.ln1(x)).split(C, dim=2)
        q = q.view(B, T, self.h, C // self.h).transpose(1, 2)
        k = k.view(B, T, self.h, C // self.h).transpose(1, 2)
        v = v.view(B, T, self.h, C // self.h).transpose(1, 2)
        att = q @ k.transpose(-2, -1) / math.sqrt(C // self.h)
        causal = torch.tril(torch.ones(T, T, dtype=torch.bool))
        att = att.masked_fill(~causal, float("-inf")).softmax(-1)
        y = (att @ v).transpose(1, 2).reshape(B, T, C)
        x = x + self.proj(y)
        return x + self.mlp(self.ln2(x))


class Step(nn.Module):
    def __init__(self, vocab=50, d=16, ctx=10):
        super().__init__()
        self.tok = nn.Embedding(vocab, d)
        self.pos = nn.Parameter(torch.zeros(1, ctx, d))
        self.blocks = nn.Sequential(Block(d, 2), Block(d, 2))
        self.ln = nn.LayerNorm(d)
        self.head = nn.Linear(d, vocab, bias=False)

    def logits(self, ids):
        return self.head(self.ln(self.blocks(self.tok(ids) + self.pos)))

    def forward(self, ids):
        logits = self.logits(ids)
        return F.cross_entropy(logits.reshape(-1, logits.size(-1)), ids.reshape(-1))  # fault: target-in-prediction


class Fixed(Step):
    def forward(self, ids):
        logits = self.logits(ids)[:, :-1]
        return F.cross_entropy(logits.reshape(-1, logits.size(-1)), ids[:, 1:].reshape(-1))


def example():
    return (torch.randint(0, 50, (4, 10), generator=torch.Generator().manual_seed(5)),)


OPEN = [{0: "batch"}]
