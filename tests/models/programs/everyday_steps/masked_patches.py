"""Masked patches.

CORRECT: only hidden patches are scored, the mean runs over pixels.
"""
import torch
import torch.nn as nn


class Step(nn.Module):
    """Masked image modelling; removed is 1 where a patch was hidden from the encoder."""

    def __init__(self, p=8, dim=64, n=36):
        super().__init__()
        self.p = p
        self.inp = nn.Linear(3 * p * p, dim)
        self.mask_token = nn.Parameter(torch.zeros(dim))
        self.pos = nn.Parameter(torch.randn(n, dim) * 0.02)
        self.enc = nn.TransformerEncoderLayer(dim, 4, 128, dropout=0.0, batch_first=True)
        self.out = nn.Linear(dim, 3 * p * p)

    def forward(self, img, removed):
        b, c, h, w = img.shape
        p = self.p
        x = img.reshape(b, c, h // p, p, w // p, p).permute(0, 2, 4, 3, 5, 1).reshape(b, -1, p * p * c)
        mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True)
        target = (x - mean) / (var + 1e-6).sqrt()
        m = removed.unsqueeze(-1)
        tok = self.inp(x) * (1 - m) + self.mask_token * m
        pred = self.out(self.enc(tok + self.pos))
        per_patch = (pred - target).pow(2).mean(dim=-1)
        return (per_patch * removed).sum() / removed.sum()


def example():
    torch.manual_seed(0)
    return torch.rand(6, 3, 48, 48), (torch.rand(6, 36) < 0.75).float()
