"""Set regression with one self-attention layer spelt in einsum (order-free points, target per point).

MISTAKE (silent): the values are contracted over the query index ('bqk,bqd->bkd'), whose weights do not sum to 1; 'bqk,bkd->bqd' is the attention.
"""
import torch
from torch import nn, einsum


class Step(nn.Module):
    def __init__(self, d_in=4, d=12):
        super().__init__()
        self.to_q = nn.Linear(d_in, d, bias=False)
        self.to_k = nn.Linear(d_in, d, bias=False)
        self.to_v = nn.Linear(d_in, d, bias=False)
        self.ff = nn.Sequential(nn.Linear(d, 24), nn.GELU(), nn.Linear(24, 1))
        self.scale = d ** -0.5

    def forward(self, pts, target):
        q, k, v = self.to_q(pts) * self.scale, self.to_k(pts), self.to_v(pts)
        w = einsum("bqd,bkd->bqk", q, k).softmax(-1)
        mixed = einsum("bqk,bqd->bkd", w, v)  # fault: class-axis-position
        y = self.ff(mixed)[..., 0]
        return (y - target).square().mean()


class Fixed(Step):
    def forward(self, pts, target):
        q, k, v = self.to_q(pts) * self.scale, self.to_k(pts), self.to_v(pts)
        w = einsum("bqd,bkd->bqk", q, k).softmax(-1)
        mixed = einsum("bqk,bkd->bqd", w, v)
        y = self.ff(mixed)[..., 0]
        return (y - target).square().mean()


def example():
    torch.manual_seed(91)
    return torch.randn(4, 9, 4), torch.randn(4, 9)
