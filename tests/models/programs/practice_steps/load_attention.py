"""Electricity load forecasting: self-attention over the last day, horizon of six hours.

MISTAKE (silent): the attention scores are multiplied by sqrt(d) where they have to be divided, the softmax
saturates.
"""
import torch
import torch.nn as nn


class SelfAttention(nn.Module):
    def __init__(self, dim, heads=2):
        super().__init__()
        self.heads = heads
        self.head_dim = dim // heads
        self.q, self.k, self.v = (nn.Linear(dim, dim) for _ in range(3))
        self.o = nn.Linear(dim, dim)

    def split(self, t):
        b, n, _ = t.shape
        return t.reshape(b, n, self.heads, self.head_dim).permute(0, 2, 1, 3)

    def forward(self, x):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) * self.head_dim ** 0.5  # fault: scores-scaled-by-other-extent
        a = torch.softmax(scores, dim=-1)
        y = torch.matmul(a, v).permute(0, 2, 1, 3).flatten(2)
        return self.o(y)


class ScaledAttention(SelfAttention):
    def forward(self, x):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) * self.head_dim ** -0.5
        a = torch.softmax(scores, dim=-1)
        y = torch.matmul(a, v).permute(0, 2, 1, 3).flatten(2)
        return self.o(y)


class Step(nn.Module):
    attention = SelfAttention

    def __init__(self, n_feat=4, dim=16, steps=24, horizon=6):
        super().__init__()
        self.inp = nn.Linear(n_feat, dim)
        self.pos = nn.Parameter(0.02 * torch.randn(steps, dim))
        self.norm = nn.LayerNorm(dim)
        self.attn = self.attention(dim)
        self.ff = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 32), nn.GELU(), nn.Linear(32, dim))
        self.out = nn.Linear(dim, horizon)

    def forward(self, history, future):
        # history: [B, 24, features], future: [B, 6]
        x = self.inp(history) + self.pos
        x = x + self.attn(self.norm(x))
        x = x + self.ff(x)
        return (self.out(x[:, -1]) - future).abs().mean()


class Fixed(Step):
    attention = ScaledAttention


def example():
    g = torch.Generator().manual_seed(1)
    return torch.randn(5, 24, 4, generator=g), torch.randn(5, 6, generator=g)
