"""Triplet loss for product embeddings.

CORRECT: on unit vectors the squared Euclidean distance is 2 - 2 cos, so no square root and no difference tensor is needed; relu is the hinge.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    margin = 0.4

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(18, 32), nn.ReLU(inplace=True), nn.Linear(32, 8))

    def embed(self, x):
        return F.normalize(self.net(x), p=2, dim=1)

    def forward(self, anchor, pos, neg):
        n = anchor.size(0)
        a, p, q = self.embed(torch.cat([anchor, pos, neg])).split(n)
        d_ap = 2 - 2 * (a * p).sum(1)
        d_an = 2 - 2 * torch.einsum("nd,nd->n", a, q)
        return F.relu(d_ap - d_an + self.margin).mean()


def example():
    torch.manual_seed(105)
    return torch.randn(4, 18), torch.randn(4, 18), torch.randn(4, 18)
