"""Trains a graph autoencoder that predicts interactions of proteins. The sampled non-edges are scored like edges, so all links are pushed to probability one; the negative term should be -log(1 - sigmoid(score))."""
import torch
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.w1 = nn.Linear(20, 32)
        self.w2 = nn.Linear(32, 10)

    def encode(self, x, edge_index):
        src, dst = edge_index[0], edge_index[1]
        h = torch.relu(self.w1(x))
        agg = torch.zeros_like(h).index_add(0, dst, h[src])
        return self.w2(h + agg)

    def decode(self, z, pairs):
        return torch.sigmoid((z[pairs[0]] * z[pairs[1]]).sum(-1))

    def forward(self, x, edge_index, non_edges):
        z = self.encode(x, edge_index)
        pos_loss = -torch.log(self.decode(z, edge_index) + 1e-15).mean()
        neg_loss = -torch.log(self.decode(z, non_edges) + 1e-15).mean()  # fault: no-rule
        return pos_loss + neg_loss


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(26, 20), torch.randint(0, 26, (2, 60)), torch.randint(0, 26, (2, 44)))
