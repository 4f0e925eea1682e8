"""Listwise ranking of hotels in a search result (ListNet, top one).

CORRECT: both softmaxes run over the hotels of one search (dim=1), missing hotels get -inf-like scores before the
softmax, the loss is the cross entropy of two distributions written by hand.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class HotelScorer(nn.Module):
    def __init__(self, n_feat=8, n_query=5, hidden=24):
        super().__init__()
        self.hotel = nn.Linear(n_feat, hidden)
        self.query = nn.Linear(n_query, hidden, bias=False)
        self.out = nn.Linear(hidden, 1)

    def forward(self, hotels, query):
        # hotels: [search, hotel, feat], query: [search, feat]
        h = torch.relu(self.hotel(hotels) + self.query(query).unsqueeze(1))
        return self.out(h).squeeze(-1)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.scorer = HotelScorer()

    def forward(self, hotels, query, relevance, exists):
        scores = self.scorer(hotels, query)
        missing = exists == 0
        log_p = F.log_softmax(scores.masked_fill(missing, -1e4), dim=1)
        target = F.softmax(relevance.masked_fill(missing, -1e4), dim=1)
        per_list = -(target * log_p).masked_fill(missing, 0.0).sum(dim=1)
        return per_list.mean()


def example():
    g = torch.Generator().manual_seed(1)
    exists = torch.ones(5, 9)
    for i, n in enumerate([9, 6, 7, 3, 8]):
        exists[i, n:] = 0
    return (
        torch.randn(5, 9, 8, generator=g),
        torch.randn(5, 5, generator=g),
        torch.randint(0, 4, (5, 9), generator=g).float(),
        exists,
    )


OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}, {0: "batch"}]
