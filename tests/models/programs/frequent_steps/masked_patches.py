"""SimMIM / MAE style pre-training with per-patch normalised targets.

CORRECT: unusual, and as it is meant.
"""
import torch
import torch.nn as nn


def patchify(imgs, p):
    n, c, h, w = imgs.shape
    x = imgs.reshape(n, c, h // p, p, w // p, p)
    x = torch.einsum("nchpwq->nhwpqc", x)
    return x.reshape(n, (h // p) * (w // p), p * p * c)


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, dim * 2), nn.GELU(), nn.Linear(dim * 2, dim))

    def forward(self, x):
        y = self.n1(x)
        x = x + self.attn(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.n2(x))


class Step(nn.Module):
    def __init__(self, p=4, dim=32, n_patches=16):
        super().__init__()
        self.p = p
        self.embed = nn.Linear(p * p * 3, dim)
        self.mask_token = nn.Parameter(torch.zeros(dim))
        self.pos = nn.Parameter(torch.randn(n_patches, dim) * 0.02)
        self.block = Block(dim, 4)
        self.pred = nn.Linear(dim, p * p * 3)

    def forward(self, imgs, mask):
        target = patchify(imgs, self.p)
        x = self.embed(target)
        x = torch.where(mask.unsqueeze(-1), self.mask_token, x) + self.pos
        pred = self.pred(self.block(x))
        mean = target.mean(dim=-1, keepdim=True)
        var = target.var(dim=-1, keepdim=True)
        target = (target - mean) / (var + 1.0e-6).sqrt()
        loss = (pred - target).pow(2).mean(dim=-1)
        return (loss * mask).sum() / mask.sum()


def example():
    g = torch.Generator().manual_seed(38)
    return torch.rand(3, 3, 16, 16, generator=g), torch.rand(3, 16, generator=g) < 0.6
