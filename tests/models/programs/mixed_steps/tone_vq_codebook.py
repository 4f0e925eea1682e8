"""Vector-quantised timbre codes with a commitment term.

CORRECT: z + (q - z).detach() is the straight-through copy; in the graph the terms seem to cancel, the value is q. argmin over the
codes is the last axis.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    beta = 0.25

    def __init__(self, codes=20, d=6):
        super().__init__()
        self.enc, self.dec = nn.Linear(24, d), nn.Linear(d, 24)
        self.book = nn.Embedding(codes, d)

    def forward(self, env):
        z = self.enc(env)
        e = self.book.weight
        dist = z.pow(2).sum(-1, keepdim=True) - 2 * z @ e.t() + e.pow(2).sum(-1)
        q = self.book(dist.argmin(-1))
        st = z + (q - z).detach()
        rec = (self.dec(st) - env).abs().mean()
        return rec + F.mse_loss(q, z.detach()) + self.beta * F.mse_loss(z, q.detach())


def example():
    torch.manual_seed(87)
    return (torch.rand(4, 9, 24),)


OPEN = [{0: "batch", 1: "frames"}]
