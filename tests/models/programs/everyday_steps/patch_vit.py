"""Patch vit.

MISTAKE (silent): mixes channels and positions, needs flatten(2).transpose(1, 2).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class PatchEmbed(nn.Module):
    def __init__(self, dim=64, patch=8):
        super().__init__()
        self.proj = nn.Conv2d(3, dim, kernel_size=patch, stride=patch)

    def forward(self, x):
        x = self.proj(x)
        b, c, h, w = x.shape
        return x.reshape(b, h * w, c)  # fault: class-axis-position


class Step(nn.Module):
    def __init__(self, dim=64, n_cls=10):
        super().__init__()
        self.embed = PatchEmbed(dim)
        self.pos = nn.Parameter(torch.zeros(1, 24, dim))
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, n_cls)

    def forward(self, img, label):
        x = self.embed(img) + self.pos
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        att = torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, dim=-1)
        x = x + self.out(att @ v)
        logits = self.head(x.mean(dim=1))
        return F.cross_entropy(logits, label)


def example():
    torch.manual_seed(0)
    return torch.randn(16, 3, 32, 48), torch.randint(0, 10, (16,))
