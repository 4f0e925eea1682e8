"""Slot attention.

CORRECT: slot attention: softmax over slots, then renormalised over inputs; alpha softmax over slots.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SlotAttention(nn.Module):
    def __init__(self, n_slots, dim, iters=2, eps=1e-8):
        super().__init__()
        self.iters, self.eps, self.scale = iters, eps, dim ** -0.5
        self.init = nn.Parameter(torch.randn(1, n_slots, dim) * 0.2)
        self.q, self.k, self.v = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.norm_in, self.norm_s = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))

    def forward(self, feats):  # (B, N, D)
        x = self.norm_in(feats)
        k, v = self.k(x), self.v(x)
        slots = self.init.expand(x.size(0), -1, -1)
        for _ in range(self.iters):
            q = self.q(self.norm_s(slots)) * self.scale
            dots = torch.einsum("bnd,bsd->bns", k, q)
            attn = dots.softmax(dim=-1) + self.eps       # slots compete for every input
            attn = attn / attn.sum(dim=1, keepdim=True)  # weighted mean over the inputs
            slots = slots + torch.einsum("bns,bnd->bsd", attn, v)
            slots = slots + self.mlp(slots)
        return slots


class Step(nn.Module):
    def __init__(self, dim=16, n_slots=4, hw=6):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, 2, stride=2)
        self.slots = SlotAttention(n_slots, dim)
        self.pos = nn.Parameter(torch.randn(1, 1, hw * hw, dim) * 0.1)
        self.dec = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, 3 * 4 + 1))

    def forward(self, image):
        feats = self.patch(image).flatten(2).transpose(1, 2)
        s = self.slots(feats)
        out = self.dec(s.unsqueeze(2) + self.pos)            # (B, S, N, 13)
        rgb, alpha = out[..., :12], out[..., 12:].softmax(dim=1)
        recon = (alpha * rgb).sum(dim=1)
        target = F.unfold(image, kernel_size=2, stride=2).transpose(1, 2)
        return F.mse_loss(recon, target)


def example():
    g = torch.Generator().manual_seed(5)
    return (torch.rand(3, 3, 12, 12, generator=g) * 2 - 1,)
