"""Link prediction in a citation graph with a mean-aggregating GNN and negative edges.

CORRECT: messages are summed with scatter_add at the target node and divided by its in-degree; the score is a raw dot
product and goes to BCEWithLogits; positive edges have label one, the sampled ones zero.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SageLayer(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.self_lin = nn.Linear(n_in, n_out)
        self.nbr_lin = nn.Linear(n_in, n_out, bias=False)

    def forward(self, x, edge_index):
        src, dst = edge_index[0], edge_index[1]
        msg = x[src]
        idx = dst.unsqueeze(-1)
        agg = torch.zeros_like(x).scatter_add(0, idx.expand_as(msg), msg)
        deg = torch.zeros_like(x[:, :1]).scatter_add(0, idx, torch.ones_like(msg[:, :1]))
        return self.self_lin(x) + self.nbr_lin(agg / deg.clamp(min=1))


class Step(nn.Module):
    def __init__(self, n_feat=18, hidden=16, emb=12):
        super().__init__()
        self.conv1 = SageLayer(n_feat, hidden)
        self.conv2 = SageLayer(hidden, emb)

    def decode(self, z, pairs):
        return (z[pairs[0]] * z[pairs[1]]).sum(dim=-1)

    def forward(self, x, edge_index, pos_pairs, neg_pairs):
        # x [nodes, feat], edge_index [2, edges] (from, to), pairs [2, n]
        h = F.relu(self.conv1(x, edge_index))
        z = self.conv2(h, edge_index)
        pos, neg = self.decode(z, pos_pairs), self.decode(z, neg_pairs)
        logits = torch.cat([pos, neg])
        labels = torch.cat([torch.ones_like(pos), torch.zeros_like(neg)])
        return F.binary_cross_entropy_with_logits(logits, labels)


def example():
    g = torch.Generator().manual_seed(1)
    return (
        torch.randn(11, 18, generator=g),
        torch.randint(0, 11, (2, 30), generator=g),
        torch.randint(0, 11, (2, 7), generator=g),
        torch.randint(0, 11, (2, 9), generator=g),
    )
