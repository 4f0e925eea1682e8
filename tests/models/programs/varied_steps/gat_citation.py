"""One dense graph-attention layer and a node classifier on a citation graph; only some nodes are labelled.

MISTAKE (silent): attention is normalised over the receiving nodes (dim=0) and then summed over the senders; weights of one receiver do not sum to 1. It should be dim=1.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, fin=10, hid=8, ncls=4):
        super().__init__()
        self.W = nn.Linear(fin, hid, bias=False)
        self.a_src = nn.Parameter(torch.randn(hid, 1) * 0.3)
        self.a_dst = nn.Parameter(torch.randn(hid, 1) * 0.3)
        self.out = nn.Linear(hid, ncls)

    def forward(self, x, adj, y, labelled):
        h = self.W(x)
        e = F.leaky_relu(h @ self.a_dst + (h @ self.a_src).t(), 0.2)
        e = torch.where(adj > 0, e, torch.full_like(e, -9e15))
        alpha = torch.softmax(e, dim=0)  # fault: class-axis-position
        h = F.elu(alpha @ h)
        nll = F.cross_entropy(self.out(h), y, reduction="none")
        m = labelled.to(nll.dtype)
        return (nll * m).sum() / m.sum().clamp(min=1)


class Fixed(Step):
    def forward(self, x, adj, y, labelled):
        h = self.W(x)
        e = F.leaky_relu(h @ self.a_dst + (h @ self.a_src).t(), 0.2)
        e = torch.where(adj > 0, e, torch.full_like(e, -9e15))
        alpha = torch.softmax(e, dim=1)
        h = F.elu(alpha @ h)
        nll = F.cross_entropy(self.out(h), y, reduction="none")
        m = labelled.to(nll.dtype)
        return (nll * m).sum() / m.sum().clamp(min=1)


def example():
    torch.manual_seed(4)
    n = 8
    adj = (torch.rand(n, n) < 0.35).float()
    adj = ((adj + adj.t() + torch.eye(n)) > 0).float()
    return torch.randn(n, 10), adj, torch.randint(0, 4, (n,)), torch.tensor([1, 1, 0, 1, 0, 0, 1, 0], dtype=torch.bool)
