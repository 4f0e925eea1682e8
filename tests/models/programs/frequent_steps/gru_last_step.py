"""Predicting the next item from variable-length click sequences (0 = padding at the end).

MISTAKE (silent): the last valid step is lengths - 1, this reads the state after the first padding.
"""
import torch
import torch.nn as nn


class GRU4Rec(nn.Module):
    def __init__(self, n_items, dim):
        super().__init__()
        self.item_emb = nn.Embedding(n_items + 1, dim, padding_idx=0)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.b_out = nn.Parameter(torch.zeros(n_items + 1))

    def forward(self, clicks):
        lengths = (clicks > 0).sum(dim=1)
        out, _ = self.gru(self.item_emb(clicks))
        last = out[torch.arange(clicks.size(0)), lengths]  # fault: index-out-of-range
        return last @ self.item_emb.weight.t() + self.b_out


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = GRU4Rec(40, 16)
        self.ce = nn.CrossEntropyLoss()

    def forward(self, clicks, next_item):
        scores = self.model(clicks)
        return self.ce(scores, next_item)


def example():
    g = torch.Generator().manual_seed(44)
    clicks = torch.randint(1, 41, (6, 10), generator=g)
    lengths = torch.tensor([3, 9, 5, 7, 4, 8])
    clicks = clicks * (torch.arange(10)[None, :] < lengths[:, None]).long()
    return clicks, torch.randint(1, 41, (6,), generator=g)
