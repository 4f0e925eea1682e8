"""Two GCN layers.  The degrees are counted before the self loops are added.

An isolated node has degree 0 and 0**-0.5 = inf; inf enters its row through the self loop: nan/inf.
Fix: count the degrees of A + I.
"""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1 = nn.Linear(5, 8, bias=False)
        self.w2 = nn.Linear(8, 3, bias=False)

    def norm(self, adj):
        deg = adj.sum(1)
        a = adj + torch.eye(adj.shape[0])
        d = deg.pow(-0.5)
        return d[:, None] * a * d[None, :]

    def forward(self, x, adj, y):
        a = self.norm(adj)  # fault: degree-without-own-edge
        h = torch.relu(a @ self.w1(x))
        return F.cross_entropy(a @ self.w2(h), y)


class Fixed(Step):
    def norm(self, adj):
        a = adj + torch.eye(adj.shape[0])
        d = a.sum(1).pow(-0.5)
        return d[:, None] * a * d[None, :]


def example():
    a = torch.zeros(6, 6)
    for i in range(6):
        a[i, (i + 1) % 6] = a[(i + 1) % 6, i] = 1
    torch.manual_seed(25)
    return torch.randn(6, 5), a, torch.randint(0, 3, (6,))
