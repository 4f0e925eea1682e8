"""Single-head causal transformer block, next-value prediction on a series.
masked_fill wants True where attention is forbidden; tril marks the past (and the present),
so every step sees only the future - it looks straight at its target (and the last row sees nothing
but the fill constant).  Fix: triu(diagonal=1).
"""
import math

import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, d=16, max_len=64):
        super().__init__()
        self.inp = nn.Linear(1, d)
        self.pos = nn.Parameter(0.02 * torch.randn(max_len, d))
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, 1)
        self.d = d

    def forbid(self, n):
        return torch.ones(n, n, dtype=torch.bool).tril()  # wrong: masks the past, leaves the future visible

    def forward(self, series):
        x, y = series[:, :-1], series[:, 1:]
        h = self.inp(x.unsqueeze(-1)) + self.pos[: x.shape[1]]
        q, k, v = self.qkv(h).chunk(3, dim=-1)
        s = q @ k.transpose(-1, -2) / math.sqrt(self.d)
        s = s.masked_fill(self.forbid(x.shape[1]), -1e4)  # fault: inverted-mask
        return nn.functional.mse_loss(self.out(h + s.softmax(-1) @ v).squeeze(-1), y)


class Fixed(Step):
    def forbid(self, n):
        return torch.ones(n, n, dtype=torch.bool).triu(1)


def example():
    torch.manual_seed(23)
    return (torch.randn(4, 17),)
