"""Character decoder with rotary position embedding (the half-split form) and a causal mask.

CORRECT: the angles are repeated with cat([f, f]) which goes with the half-split rotate (-x2, x1); cos and sin are [T, dk] and broadcast over batch and heads;
the mask is strictly upper triangular.
"""
import torch
from torch import nn
import torch.nn.functional as F


def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


class Step(nn.Module):
    def __init__(self, vocab=40, d=24, heads=3):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.qkv, self.o = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.head = nn.Linear(d, vocab)
        self.h, self.dk = heads, d // heads
        self.register_buffer("inv", 10000.0 ** (-torch.arange(0, self.dk, 2).float() / self.dk))

    def rope(self, x):
        ang = torch.outer(torch.arange(x.shape[-2]).float(), self.inv)
        ang = torch.cat([ang, ang], dim=-1)
        return x * ang.cos() + rotate_half(x) * ang.sin()

    def forward(self, chars):
        inp, out = chars[:, :-1], chars[:, 1:]
        x = self.emb(inp)
        B, T, D = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.h, self.dk).permute(2, 0, 3, 1, 4).unbind(0)
        s = self.rope(q) @ self.rope(k).transpose(-1, -2) / self.dk ** 0.5
        s = s + torch.full((T, T), float("-inf")).triu(1)
        y = (s.softmax(-1) @ v).transpose(1, 2).reshape(B, T, D)
        return F.cross_entropy(self.head(x + self.o(y)).reshape(B * T, -1), out.reshape(B * T))


def example():
    torch.manual_seed(115)
    return (torch.randint(0, 40, (3, 11)),)
