"""Gat cora.

CORRECT: [N,1]+[1,N] gives the attention logit of every edge.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class GATLayer(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W = nn.Linear(d_in, d_out, bias=False)
        self.a_src = nn.Linear(d_out, 1, bias=False)
        self.a_dst = nn.Linear(d_out, 1, bias=False)

    def forward(self, x, adj):
        h = self.W(x)
        e = F.leaky_relu(self.a_src(h) + self.a_dst(h).t(), 0.2)
        e = e.masked_fill(adj == 0, -9e15)
        alpha = F.softmax(e, dim=1)
        return alpha @ h


class Step(nn.Module):
    def __init__(self, n_feat=21, hidden=16, n_classes=5):
        super().__init__()
        self.g1 = GATLayer(n_feat, hidden)
        self.g2 = GATLayer(hidden, n_classes)

    def forward(self, x, adj, y, train_idx):
        adj = ((adj + torch.eye(adj.shape[0], device=adj.device)) > 0).float()
        h = F.elu(self.g1(x, adj))
        out = F.log_softmax(self.g2(h, adj), dim=1)
        return F.nll_loss(out[train_idx], y[train_idx])


def example():
    torch.manual_seed(0)
    return torch.randn(25, 21), (torch.rand(25, 25) < 0.2).float(), torch.randint(0, 5, (25,)), torch.randperm(25)[:9]
