"""ListNet ranking of hotels within a query, with padded candidate lists.

CORRECT: softmax over the list axis (dim=1) of both scores and relevance, padded candidates filled before the softmax.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Scorer(nn.Module):
    def __init__(self, query=6, item=14, hidden=24):
        super().__init__()
        self.q = nn.Linear(query, hidden)
        self.i = nn.Linear(item, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, query, items):
        h = torch.relu(self.q(query).unsqueeze(1) + self.i(items))
        return self.out(h).squeeze(-1)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.scorer = Scorer()

    def forward(self, query, items, relevance, is_pad):
        scores = self.scorer(query, items)
        scores = scores.masked_fill(is_pad, -1e4)
        gold = F.softmax(relevance.masked_fill(is_pad, -1e4), dim=1)
        log_p = F.log_softmax(scores, dim=1)
        return -(gold * log_p).sum(dim=1).mean()


def example():
    g = torch.Generator().manual_seed(1)
    n = torch.tensor([8, 5, 3, 7, 6])
    return (
        torch.randn(5, 6, generator=g),
        torch.randn(5, 8, 14, generator=g),
        torch.randint(0, 4, (5, 8), generator=g).float(),
        torch.arange(8)[None] >= n[:, None],
    )


OPEN = [{0: "batch", 1: "items"}] * 4
OPEN[0] = {0: "batch"}
