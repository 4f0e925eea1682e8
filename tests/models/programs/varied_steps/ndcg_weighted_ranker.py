"""Listwise ranker: softmax cross-entropy over the documents of a query, each document weighted with its DCG gain at the present rank.

MISTAKE (silent): scores.argsort(descending=True) gives the document at each rank, and is used as the rank of each document; the rank is argsort of argsort.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, nfeat=14):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(nfeat, 24), nn.ReLU(), nn.Linear(24, 1))

    def ranks(self, scores):
        return torch.argsort(scores, dim=1, descending=True)

    def forward(self, docs, relevance):
        scores = self.net(docs).squeeze(-1)
        rank = self.ranks(scores.detach())
        discount = 1.0 / torch.log2(rank.float() + 2.0)  # fault: order-as-ranks
        gain = (2.0 ** relevance - 1.0) * discount  # fault: order-as-ranks
        logp = torch.log_softmax(scores, dim=1)
        return -(gain * logp).sum(1).mean()


class Fixed(Step):
    def ranks(self, scores):
        return torch.argsort(torch.argsort(scores, dim=1, descending=True), dim=1)


def example():
    torch.manual_seed(43)
    return torch.randn(4, 7, 14), torch.randint(0, 4, (4, 7)).float()
