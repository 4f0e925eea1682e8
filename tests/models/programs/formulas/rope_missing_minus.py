"""Rotary embeddings (half split).  rotate_half returns (x2, x1), the minus sign is gone.

The map is then no rotation: norms change and q.k does not depend only on the distance.  Fix: (-x2, x1).
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, D=8, H=2, T=6):
        super().__init__()
        self.wq = nn.Linear(D * H, D * H, bias=False)
        self.wk = nn.Linear(D * H, D * H, bias=False)
        self.H, self.D = H, D
        inv = 1.0 / 10000 ** (torch.arange(0, D, 2).float() / D)
        ang = torch.outer(torch.arange(T).float(), inv)
        ang = torch.cat([ang, ang], -1)
        self.register_buffer("cos", ang.cos())
        self.register_buffer("sin", ang.sin())

    def rotate_half(self, x):
        a, b = x.chunk(2, dim=-1)
        return torch.cat((b, a), dim=-1)

    def rope(self, x):
        return x * self.cos + self.rotate_half(x) * self.sin

    def forward(self, x, bias):
        B, T, _ = x.shape
        q = self.wq(x).view(B, T, self.H, self.D).transpose(1, 2)
        k = self.wk(x).view(B, T, self.H, self.D).transpose(1, 2)
        s = torch.einsum("bhid,bhjd->bhij", self.rope(q), self.rope(k)) * self.D ** -0.5  # fault: broken-rotation
        return ((s - bias) ** 2).mean()


class Fixed(Step):
    def rotate_half(self, x):
        a, b = x.chunk(2, dim=-1)
        return torch.cat((-b, a), dim=-1)


def example():
    torch.manual_seed(4)
    return torch.randn(2, 6, 16), torch.randn(2, 2, 6, 6)
