"""Rotary embeddings, two conventions mixed.

cos/sin come in interleaved order (pairs 0,1 | 2,3 | ...), but the rotation pairs i with i + D/2 (half
split), so the two halves of one pair turn with different frequencies.  Fix: torch.cat([a, a], -1).
"""
import torch
import torch.nn.functional as F
from torch import nn


def rot(x):
    h = x.shape[-1] // 2
    return torch.cat([-x[..., h:], x[..., :h]], -1)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(8, 8)
        self.k = nn.Linear(8, 8)
        self.v = nn.Linear(8, 8)

    def angles(self, n, d):
        f = torch.pow(10000.0, -torch.arange(0, d, 2).float() / d)
        a = torch.arange(n).float()[:, None] * f[None]
        return torch.stack([a, a], dim=-1).flatten(-2)

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        a = self.angles(5, 8)
        c, s = torch.cos(a), torch.sin(a)
        q = q * c + rot(q) * s  # fault: broken-rotation
        k = k * c + rot(k) * s  # fault: broken-rotation
        o = F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None], is_causal=True).squeeze(1)
        return F.mse_loss(o[:, :-1], x[:, 1:])


class Fixed(Step):
    def angles(self, n, d):
        f = torch.pow(10000.0, -torch.arange(0, d, 2).float() / d)
        a = torch.arange(n).float()[:, None] * f[None]
        return torch.cat([a, a], dim=-1)


def example():
    torch.manual_seed(5)
    return (torch.randn(3, 5, 8),)
