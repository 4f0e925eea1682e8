"""Pointer network step: each decoder state points at one encoder position by scaled dot product.

MISTAKE (silent): the scale is sqrt(q.size(1)), the number of decoder steps, not the vector size; math.sqrt(q.size(-1)).
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.enc = nn.GRU(2, d, batch_first=True)
        self.dec = nn.GRU(2, d, batch_first=True)
        self.Wq = nn.Linear(d, d)
        self.Wk = nn.Linear(d, d)

    def pointers(self, q, k):
        return torch.matmul(q, k.transpose(1, 2)) / math.sqrt(q.size(1))  # fault: scores-scaled-by-other-extent class-axis-position

    def forward(self, points, dec_in, order):
        mem, h = self.enc(points)
        out, _ = self.dec(dec_in, h)
        scores = self.pointers(self.Wq(out), self.Wk(mem))  # fault: scores-scaled-by-other-extent class-axis-position
        return F.nll_loss(F.log_softmax(scores, dim=-1).permute(0, 2, 1), order)


class Fixed(Step):
    def pointers(self, q, k):
        return torch.matmul(q, k.transpose(1, 2)) / math.sqrt(q.size(-1))


def example():
    g = torch.Generator().manual_seed(7)
    pts = torch.rand(4, 6, 2, generator=g)
    order = torch.stack([torch.randperm(6, generator=g) for _ in range(4)])[:, :5]
    return pts, torch.rand(4, 5, 2, generator=g), order
