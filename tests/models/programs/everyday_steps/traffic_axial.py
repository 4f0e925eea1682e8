"""Traffic axial.

CORRECT: sensors are the sequence here, time is folded into the batch.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Attn(nn.Module):
    def __init__(self, dim, heads=4):
        super().__init__()
        self.mha = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, mask=None):
        y = self.norm(x)
        return x + self.mha(y, y, y, attn_mask=mask, need_weights=False)[0]


class Step(nn.Module):
    """Road sensors [B, T, N]: causal attention over time, free attention over sensors, next-step speed."""

    def __init__(self, dim=32, n=15, t=24):
        super().__init__()
        self.inp = nn.Linear(1, dim)
        self.pos_t = nn.Parameter(torch.randn(t, 1, dim) * 0.02)
        self.pos_n = nn.Parameter(torch.randn(n, dim) * 0.02)
        self.time, self.space = Attn(dim), Attn(dim)
        self.out = nn.Linear(dim, 1)

    def forward(self, speed):
        past, nxt = speed[:, :-1], speed[:, 1:]
        h = self.inp(past.unsqueeze(-1)) + self.pos_t + self.pos_n
        b, t, n, d = h.shape
        future = torch.triu(torch.ones(t, t, dtype=torch.bool), diagonal=1)
        h = h.transpose(1, 2).reshape(b * n, t, d)
        h = self.time(h, future).view(b, n, t, d).transpose(1, 2)
        h = self.space(h.reshape(b * t, n, d)).view(b, t, n, d)
        pred = self.out(h).squeeze(-1)
        e = (pred - nxt).abs()
        return torch.where(e < 1.0, 0.5 * e * e, e - 0.5).mean()


def example():
    torch.manual_seed(0)
    return (torch.randn(4, 25, 15),)
