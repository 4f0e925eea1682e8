"""Batch-all contrastive embedding loss on a full distance matrix.

The diagonal of the matrix is exactly 0 and sqrt has an infinite derivative there; even though the
diagonal is masked out afterwards, 0 * inf in backward makes every gradient NaN.
Fix: add an eps / clamp before sqrt.
"""
import torch
import torch.nn.functional as F
from torch import nn

OPEN = [{0: "batch"}, {0: "batch"}]


class Step(nn.Module):
    margin = 1.0

    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(10, 16), nn.PReLU(), nn.Linear(16, 8))

    def dist(self, e):
        d2 = (e.unsqueeze(0) - e.unsqueeze(1)).pow(2).sum(-1)
        return d2.sqrt()  # wrong: sqrt of the zero diagonal, NaN gradient

    def forward(self, x, ids):
        d = self.dist(self.f(x))  # fault: infinite-gradient
        same = (ids[:, None] == ids[None, :]).float()
        off = 1.0 - torch.eye(ids.shape[0])
        pull = d.pow(2) * same * off
        push = F.relu(self.margin - d).pow(2) * (1 - same)
        return (pull + push).sum() / off.sum()


class Fixed(Step):
    def dist(self, e):
        d2 = (e.unsqueeze(0) - e.unsqueeze(1)).pow(2).sum(-1)
        return d2.clamp_min(1e-12).sqrt()


def example():
    torch.manual_seed(30)
    return torch.randn(6, 10), torch.tensor([0, 0, 1, 1, 2, 2])
