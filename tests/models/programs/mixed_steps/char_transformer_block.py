"""One-block character transformer trained on next-character prediction.

MISTAKE (silent): the mask is triangular the wrong way; each position sees itself and the future, not the past.
"""
import math
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, vocab=28, d=16, heads=2, ctx=12):
        super().__init__()
        self.h = heads
        self.tok, self.pos = nn.Embedding(vocab, d), nn.Parameter(torch.randn(ctx, d) * 0.02)
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.ln = nn.LayerNorm(d)
        self.lm = nn.Linear(d, vocab)

    def hidden_positions(self, t):
        return torch.ones(t, t, dtype=torch.bool).tril(-1)  # fault: inverted-mask

    def attend(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).reshape(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4).unbind(0)
        s = q @ k.transpose(-1, -2) / math.sqrt(d // self.h)
        s = s.masked_fill(self.hidden_positions(t), float("-inf"))  # fault: inverted-mask
        return self.o((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))

    def forward(self, chars):
        inp, nxt = chars[:, :-1], chars[:, 1:]
        x = self.tok(inp) + self.pos
        x = x + self.attend(self.ln(x))  # fault: inverted-mask
        return F.cross_entropy(self.lm(x).transpose(1, 2), nxt)


class Fixed(Step):
    def hidden_positions(self, t):
        return torch.ones(t, t, dtype=torch.bool).triu(1)


def example():
    torch.manual_seed(30)
    return (torch.randint(0, 28, (4, 13)),)


OPEN = [{0: "batch"}]
