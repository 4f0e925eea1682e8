"""Citation sage.

MISTAKE (silent): message aggregation index_add at src, where the messages came from, instead of dst.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SAGEConv(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.self_lin = nn.Linear(d_in, d_out)
        self.neigh_lin = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x, edge_index):
        src, dst = edge_index[0], edge_index[1]
        msg = x[src]
        agg = torch.zeros_like(x).index_add(0, src, msg)  # fault: summed-where-gathered
        deg = torch.zeros(x.size(0), device=x.device).index_add(0, dst, torch.ones_like(dst, dtype=x.dtype))
        agg = agg / deg.clamp(min=1).unsqueeze(-1)
        return self.self_lin(x) + self.neigh_lin(agg)


class Step(nn.Module):
    def __init__(self, d=15, classes=5):
        super().__init__()
        self.conv1 = SAGEConv(d, 20)
        self.conv2 = SAGEConv(20, classes)

    def forward(self, x, edge_index, y, train_mask):
        h = F.relu(self.conv1(x, edge_index))
        logits = self.conv2(h, edge_index)
        ce = F.cross_entropy(logits, y, reduction="none")
        m = train_mask.float()
        return (ce * m).sum() / m.sum()


def example():
    g = torch.Generator().manual_seed(52)
    return (torch.randn(12, 15, generator=g), torch.randint(0, 12, (2, 30), generator=g),
            torch.randint(0, 5, (12,), generator=g), torch.arange(12) < 7)
