"""Transformer encoder layer with multi-head attention by hand, on sensor windows, for activity classification.

MISTAKE (silent): x.view(B, H, T, dk) cuts the [B, T, D] buffer into heads across time steps; it must be view(B, T, H, dk).transpose(1, 2).
"""
import torch
from torch import nn
import torch.nn.functional as F


class MHA(nn.Module):
    def __init__(self, d, heads, split):
        super().__init__()
        self.h, self.dk, self.split = heads, d // heads, split
        self.q = nn.Linear(d, d); self.k = nn.Linear(d, d); self.v = nn.Linear(d, d); self.o = nn.Linear(d, d)

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = [self.split(f(x), B, T, self.h, self.dk) for f in (self.q, self.k, self.v)]  # fault: class-axis-position
        a = torch.softmax(q @ k.mT / self.dk ** 0.5, dim=-1)
        return self.o((a @ v).transpose(1, 2).reshape(B, T, D))


class Step(nn.Module):
    def __init__(self, d=16, heads=4, classes=6):
        super().__init__()
        self.inp = nn.Linear(3, d)
        self.mha = MHA(d, heads, self.split)
        self.norm = nn.LayerNorm(d)
        self.cls = nn.Linear(d, classes)

    @staticmethod
    def split(z, B, T, H, dk):
        return z.view(B, H, T, dk)  # fault: class-axis-position

    def forward(self, window, activity):
        x = self.inp(window)
        x = self.norm(x + self.mha(x))
        return F.cross_entropy(self.cls(x.mean(1)), activity)


class Fixed(Step):
    @staticmethod
    def split(z, B, T, H, dk):
        return z.view(B, T, H, dk).transpose(1, 2)


def example():
    torch.manual_seed(90)
    return torch.randn(3, 10, 3), torch.randint(0, 6, (3,))


OPEN = [{0: "batch"}, {0: "batch"}]
