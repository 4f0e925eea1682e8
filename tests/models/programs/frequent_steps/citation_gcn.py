"""Two-layer graph network with mean aggregation on a dense adjacency matrix.

MISTAKE (silent): (N,) broadcasts along the columns, rows are not normalised (keepdim / unsqueeze(1) missing).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class GraphConv(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.lin = nn.Linear(d_in, d_out)

    def forward(self, x, adj):
        return torch.mm(adj, self.lin(x))


def normalize_adj(adj):
    """Every node averages over its out-neighbours and itself."""
    adj = adj + torch.eye(adj.size(0))
    deg = adj.sum(dim=1)
    return adj / deg  # fault: silent-broadcast-in-loss


class Step(nn.Module):
    def __init__(self, n_feat=18, n_class=4):
        super().__init__()
        self.gc1 = GraphConv(n_feat, 16)
        self.gc2 = GraphConv(16, n_class)

    def forward(self, x, adj, y, train_mask):
        a = normalize_adj(adj)  # fault: silent-broadcast-in-loss
        h = F.relu(self.gc1(x, a))
        logp = F.log_softmax(self.gc2(h, a), dim=1)
        nll = F.nll_loss(logp, y, reduction="none")
        return (nll * train_mask).sum() / train_mask.sum()


def example():
    g = torch.Generator().manual_seed(42)
    n = 14
    adj = (torch.rand(n, n, generator=g) < 0.25).float()
    adj.fill_diagonal_(0)
    return (torch.rand(n, 18, generator=g), adj, torch.randint(0, 4, (n,), generator=g),
            (torch.rand(n, generator=g) < 0.6).float())
