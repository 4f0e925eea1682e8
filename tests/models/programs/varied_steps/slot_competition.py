"""Slot attention (two rounds) that reconstructs set features from four slots.

CORRECT: softmax is over the slots axis (the slots compete for each input) and the result is then renormalised over the inputs, as slot attention wants it.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, d=14, slots=4):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.init = nn.Parameter(torch.randn(slots, d))
        self.gru = nn.GRUCell(d, d)
        self.dec = nn.Linear(d, d + 1)
        self.d = d

    def forward(self, x):
        b = x.size(0)
        k, v = self.k(x), self.v(x)
        slots = self.init.expand(b, -1, -1)
        for _ in range(2):
            att = torch.einsum("bnd,bsd->bns", k, self.q(slots)) * self.d ** -0.5
            att = att.softmax(dim=2) + 1e-8
            att = att / att.sum(dim=1, keepdim=True)
            upd = torch.einsum("bns,bnd->bsd", att, v)
            slots = self.gru(upd.reshape(-1, self.d), slots.reshape(-1, self.d)).view(b, -1, self.d)
        y = self.dec(slots)
        pick = torch.einsum("bnd,bsd->bns", x, y[..., :-1]) + y[..., -1][:, None, :]
        rec = torch.softmax(pick, dim=-1) @ y[..., :-1]
        return torch.mean((rec - x) ** 2)


def example():
    torch.manual_seed(8)
    return (torch.randn(3, 9, 14),)
