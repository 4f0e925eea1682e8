"""Music lm.

MISTAKE (silent): mask applied after the softmax, rows not normalised and future leaks into the denominator.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, dim=48, heads=3):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, causal):
        b, t, d = x.shape
        y = self.ln1(x)
        q, k, v = (f(y).reshape(b, t, self.heads, -1).permute(0, 2, 1, 3) for f in (self.q, self.k, self.v))
        w = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(d // self.heads)
        w = F.softmax(w, dim=-1) * causal  # fault: mask-after-softmax
        z = torch.einsum("bhij,bhjd->bhid", w, v).permute(0, 2, 1, 3).reshape(b, t, d)
        x = x + self.o(z)
        return x + self.ff(self.ln2(x))


class Step(nn.Module):
    def __init__(self, n_notes=130, dim=48):
        super().__init__()
        self.emb = nn.Embedding(n_notes, dim)
        self.pos = nn.Parameter(torch.randn(64, dim) * 0.02)
        self.blocks = nn.ModuleList([Block(dim) for _ in range(2)])
        self.head = nn.Linear(dim, n_notes)

    def forward(self, notes):
        src, tgt = notes[:, :-1], notes[:, 1:]
        t = src.shape[1]
        causal = torch.tril(torch.ones(t, t))
        x = self.emb(src) + self.pos[:t]
        for blk in self.blocks:
            x = blk(x, causal)
        return F.cross_entropy(self.head(x).flatten(0, 1), tgt.flatten())


def example():
    torch.manual_seed(0)
    return (torch.randint(0, 130, (8, 33)),)
