"""Slot scene.

CORRECT: slot attention lets the slots compete for each input.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SlotAttention(nn.Module):
    def __init__(self, dim=32, n_slots=5, iters=2):
        super().__init__()
        self.slots = nn.Parameter(torch.randn(1, n_slots, dim) * 0.5)
        self.q, self.k, self.v = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.up = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.iters = iters

    def forward(self, x):
        slots = self.slots.expand(x.shape[0], -1, -1)
        k, v = self.k(x), self.v(x)
        for _ in range(self.iters):
            dots = torch.einsum("bsd,bnd->bsn", self.q(slots), k) * k.shape[-1] ** -0.5
            att = dots.softmax(dim=1) + 1e-8
            att = att / att.sum(dim=-1, keepdim=True)
            slots = slots + self.up(torch.einsum("bsn,bnd->bsd", att, v))
        return slots


class Step(nn.Module):
    def __init__(self, dim=32, hw=36):
        super().__init__()
        self.enc = nn.Linear(12, dim)
        self.pos = nn.Parameter(torch.randn(1, hw, dim) * 0.1)
        self.sa = SlotAttention(dim)
        self.dec = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, 13))

    def forward(self, patches):
        slots = self.sa(self.enc(patches) + self.pos)
        out = self.dec(slots.unsqueeze(2) + self.pos.unsqueeze(1))
        rgb, alpha = out[..., :12], out[..., 12:].softmax(dim=1)
        recon = (rgb * alpha).sum(dim=1)
        return F.mse_loss(recon, patches)


def example():
    torch.manual_seed(0)
    return (torch.rand(8, 36, 12),)
