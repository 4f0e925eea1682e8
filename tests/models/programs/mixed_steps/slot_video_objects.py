"""Slot attention on frame features, reconstruction by a broadcast mixture.

CORRECT: the softmax runs over the slots (they compete for each location) and the weights are then normalised over the
locations; so slot attention is defined.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, d=16, slots=4, iters=2):
        super().__init__()
        self.iters = iters
        self.init = nn.Parameter(torch.randn(1, slots, d))
        self.q, self.k, self.v = (nn.Linear(d, d, bias=False) for _ in range(3))
        self.ns, self.ni = nn.LayerNorm(d), nn.LayerNorm(d)
        self.upd = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d))
        self.alpha, self.out = nn.Linear(2 * d, 1), nn.Linear(d, d)

    def forward(self, feats):
        x = self.ni(feats)
        k, v = self.k(x), self.v(x)
        s = self.init.expand(feats.shape[0], -1, -1)
        for _ in range(self.iters):
            att = torch.einsum("bsd,bld->bsl", self.q(self.ns(s)), k) / k.shape[-1] ** 0.5
            att = att.softmax(dim=1) + 1e-6
            att = att / att.sum(dim=2, keepdim=True)
            s = s + self.upd(att @ v)
        n, m = feats.shape[1], s.shape[1]
        pair = torch.cat([s[:, :, None].expand(-1, -1, n, -1), x[:, None].expand(-1, m, -1, -1)], -1)
        mix = self.alpha(pair).softmax(dim=1)
        rec = (mix * self.out(s)[:, :, None]).sum(1)
        return (rec - feats).square().mean()


def example():
    torch.manual_seed(83)
    return (torch.randn(3, 10, 16),)


OPEN = [{0: "frames"}]
