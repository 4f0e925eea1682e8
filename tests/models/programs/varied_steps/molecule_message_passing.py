"""Two rounds of message passing on a batch of small molecules given as an edge list, then a node property regression.

MISTAKE (silent): messages are taken at src and also summed at src, so every node gets only its own state times its degree; they must be added at dst.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, fin=6, hid=12):
        super().__init__()
        self.inp = nn.Linear(fin, hid)
        self.msg = nn.ModuleList([nn.Linear(hid, hid) for _ in range(2)])
        self.upd = nn.ModuleList([nn.Linear(2 * hid, hid) for _ in range(2)])
        self.out = nn.Linear(hid, 1)

    def aggregate(self, m, src, dst, like):
        return torch.zeros_like(like).index_add(0, src, m)  # fault: summed-where-gathered

    def forward(self, atoms, edge_index, charge):
        src, dst = edge_index[0], edge_index[1]
        h = F.relu(self.inp(atoms))
        for msg, upd in zip(self.msg, self.upd):
            m = F.relu(msg(h))[src]
            h = h + F.relu(upd(torch.cat([h, self.aggregate(m, src, dst, h)], dim=-1)))  # fault: summed-where-gathered
        return F.mse_loss(self.out(h).squeeze(-1), charge)


class Fixed(Step):
    def aggregate(self, m, src, dst, like):
        return torch.zeros_like(like).index_add(0, dst, m)


def example():
    torch.manual_seed(47)
    e = torch.tensor([[0, 1, 1, 2, 3, 4, 5, 5, 6], [1, 0, 2, 1, 4, 3, 4, 6, 5]])
    return torch.randn(7, 6), e, torch.randn(7)
