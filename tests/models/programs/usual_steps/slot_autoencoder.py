"""Slot autoencoder.

CORRECT: slots compete for the inputs, softmax over the query axis by design.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SlotAttention(nn.Module):
    def __init__(self, n_slots=4, dim=24, iters=2):
        super().__init__()
        self.init = nn.Parameter(torch.randn(1, n_slots, dim) * 0.2)
        self.q, self.k, self.v = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.norm_in, self.norm_s = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))
        self.iters, self.scale = iters, dim ** -0.5

    def forward(self, x):
        x = self.norm_in(x)
        k, v = self.k(x), self.v(x)
        slots = self.init.expand(x.shape[0], -1, -1)
        for _ in range(self.iters):
            dots = torch.einsum("bsd,bnd->bsn", self.q(self.norm_s(slots)), k) * self.scale
            attn = dots.softmax(dim=1) + 1e-8
            attn = attn / attn.sum(dim=-1, keepdim=True)
            slots = slots + torch.einsum("bsn,bnd->bsd", attn, v)
            slots = slots + self.mlp(slots)
        return slots


class Step(nn.Module):
    def __init__(self, n_pos=30, dim=24, c_in=11):
        super().__init__()
        self.inp = nn.Linear(c_in, dim)
        self.pos = nn.Parameter(torch.randn(n_pos, dim) * 0.1)
        self.slots = SlotAttention(dim=dim)
        self.dec = nn.Linear(dim, c_in + 1)

    def forward(self, feats):
        slots = self.slots(self.inp(feats) + self.pos)
        out = self.dec(torch.relu(slots[:, :, None] + self.pos))
        rgb, alpha = out[..., :-1], out[..., -1:]
        recon = (rgb * alpha.softmax(dim=1)).sum(dim=1)
        return F.mse_loss(recon, feats)


def example():
    torch.manual_seed(0)
    return (torch.randn(6, 30, 11),)
