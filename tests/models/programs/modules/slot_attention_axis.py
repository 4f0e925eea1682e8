"""Slot attention auto-encoder: the softmax runs over the slots (competition), then each slot's weights are
renormalised over the inputs.  Softmax over the query axis is intended."""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, d=8, slots=3, iters=2):
        super().__init__()
        self.d, self.iters = d, iters
        self.enc = nn.Linear(4, d)
        self.mu = nn.Parameter(torch.randn(1, slots, d))
        self.k, self.v, self.q = (nn.Linear(d, d, bias=False) for _ in range(3))
        self.gru = nn.GRUCell(d, d)
        self.ln = nn.LayerNorm(d)
        self.dec = nn.Linear(d, 4 + 1)
        self.pos = nn.Parameter(torch.randn(10, d))

    def forward(self, pts):
        B, _n, _ = pts.shape
        x = self.ln(self.enc(pts) + self.pos)
        k, v = self.k(x), self.v(x)
        slots = self.mu.expand(B, -1, -1)
        for _ in range(self.iters):
            att = torch.einsum("bsd,bnd->bsn", self.q(self.ln(slots)) * self.d ** -0.5, k).softmax(dim=1)
            att = att / (att.sum(dim=-1, keepdim=True) + 1e-8)
            upd = att @ v
            slots = self.gru(upd.reshape(-1, self.d), slots.reshape(-1, self.d)).view_as(upd)
        out = self.dec(slots.unsqueeze(2) + self.pos)
        rgb, alpha = out.split([4, 1], dim=-1)
        return ((rgb * alpha.softmax(1)).sum(1) - pts).pow(2).mean()


def example():
    torch.manual_seed(62)
    return (torch.randn(2, 10, 4),)
