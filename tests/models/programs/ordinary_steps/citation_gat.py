"""Trains a graph attention classifier of papers in a citation graph. The attention is normalised over the receiving nodes (dim 0) before it multiplies the neighbours' features; it should be over the neighbours (dim 1)."""
import torch
import torch.nn.functional as F
from torch import nn


class GATLayer(nn.Module):
    def __init__(self, fin, fout):
        super().__init__()
        self.W = nn.Linear(fin, fout, bias=False)
        self.a_dst = nn.Linear(fout, 1, bias=False)
        self.a_src = nn.Linear(fout, 1, bias=False)

    def forward(self, x, adj):
        h = self.W(x)
        e = F.leaky_relu(self.a_dst(h) + self.a_src(h).T, 0.2)
        e = e.masked_fill(adj == 0, -1e9)
        attention = F.softmax(e, dim=0)  # fault: class-axis-position
        return attention @ h


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.gat1 = GATLayer(28, 16)
        self.cls = nn.Linear(16, 5)

    def forward(self, x, adj, labels):
        h = F.elu(self.gat1(x, adj))  # fault: class-axis-position
        return F.cross_entropy(self.cls(h), labels)


def example():
    """A tuple of tensors, with realistic dtypes."""
    adj = (torch.rand(18, 18) < 0.2).float()
    adj = ((adj + torch.eye(18)) > 0).float()
    return (torch.randn(18, 28), adj, torch.randint(0, 5, (18,)))
