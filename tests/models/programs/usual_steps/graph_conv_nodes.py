"""Graph conv nodes.

MISTAKE (silent): deg [N] divides the columns, mean over neighbours needs deg.unsqueeze(1).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class MeanConv(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.self_lin = nn.Linear(d_in, d_out)
        self.nbr_lin = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x, a):
        return self.self_lin(x) + self.nbr_lin(a @ x)


def row_normalize(adj):
    deg = adj.sum(dim=1).clamp(min=1.0)
    return adj / deg  # fault: silent-broadcast-in-loss


class Step(nn.Module):
    """Semi-supervised node classification on a directed citation graph."""

    def __init__(self, n_feat=19, hidden=24, n_classes=7):
        super().__init__()
        self.convs = nn.ModuleList([MeanConv(n_feat, hidden), MeanConv(hidden, n_classes)])

    def forward(self, x, adj, labels, train_mask):
        a = row_normalize(adj)  # fault: silent-broadcast-in-loss
        h = F.relu(self.convs[0](x, a))
        h = F.dropout(h, 0.3, self.training)
        logits = self.convs[1](h, a)
        nll = F.cross_entropy(logits, labels, reduction="none")
        return (nll * train_mask).sum() / train_mask.sum()


def example():
    torch.manual_seed(0)
    n = 30
    return torch.randn(n, 19), (torch.rand(n, n) < 0.15).float(), torch.randint(0, 7, (n,)), (torch.rand(n) < 0.4).float()
