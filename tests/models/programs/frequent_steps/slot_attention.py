"""Object-centric auto-encoder with slot attention over a feature grid.

CORRECT: unusual, and as it is meant.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SlotAttention(nn.Module):
    def __init__(self, num_slots=4, dim=24, iters=2, eps=1e-8):
        super().__init__()
        self.iters, self.eps, self.scale = iters, eps, dim ** -0.5
        self.slots_init = nn.Parameter(torch.randn(1, num_slots, dim) * 0.2)
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_k = nn.Linear(dim, dim, bias=False)
        self.to_v = nn.Linear(dim, dim, bias=False)
        self.norm_in, self.norm_slots = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.update = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 48), nn.ReLU(), nn.Linear(48, dim))

    def forward(self, inputs):
        inputs = self.norm_in(inputs)
        k, v = self.to_k(inputs), self.to_v(inputs)
        slots = self.slots_init.expand(inputs.shape[0], -1, -1)
        for _ in range(self.iters):
            q = self.to_q(self.norm_slots(slots))
            dots = torch.einsum("bid,bjd->bij", q, k) * self.scale
            attn = dots.softmax(dim=1) + self.eps
            attn = attn / attn.sum(dim=-1, keepdim=True)
            slots = slots + torch.einsum("bjd,bij->bid", v, attn)
            slots = slots + self.update(slots)
        return slots


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(12, 24)
        self.slot_attention = SlotAttention()
        self.pos = nn.Parameter(torch.randn(1, 1, 16, 24) * 0.1)
        self.decoder = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 12 + 1))

    def forward(self, patches):
        slots = self.slot_attention(self.embed(patches))
        out = self.decoder(slots.unsqueeze(2) + self.pos)
        recons, alpha = out.split([12, 1], dim=-1)
        masks = alpha.softmax(dim=1)
        recon = (recons * masks).sum(dim=1)
        return F.mse_loss(recon, patches)


def example():
    g = torch.Generator().manual_seed(5)
    return (torch.rand(3, 16, 12, generator=g),)
