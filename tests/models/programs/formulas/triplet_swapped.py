"""Face embedding, triplet margin loss with positive and negative distance exchanged.

relu(d_an - d_ap + m) draws negatives near and positives away.  Fix: d_ap - d_an + m.
"""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(48, 24), nn.PReLU(), nn.Linear(24, 6))

    def margin(self, ap, an):
        return torch.relu(an - ap + 0.3)

    def forward(self, anchor, pos, neg):
        ea, ep, en = (F.normalize(self.net(t)) for t in (anchor, pos, neg))
        ap = (ea - ep).square().sum(1)
        an = (ea - en).square().sum(1)
        return self.margin(ap, an).mean()  # fault: positive-and-negative-exchanged


class Fixed(Step):
    def margin(self, ap, an):
        return torch.relu(ap - an + 0.3)


def example():
    torch.manual_seed(22)
    return tuple(torch.randn(4, 3, 4, 4) for _ in range(3))
