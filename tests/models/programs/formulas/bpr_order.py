"""BPR for implicit feedback: log-sigmoid of (negative - positive).

The recommender learns to rank the not clicked item first.  Fix: pos - neg.
"""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    def __init__(self, nu=11, ni=17, k=6):
        super().__init__()
        self.U = nn.Embedding(nu, k)
        self.I = nn.Embedding(ni, k)
        self.bi = nn.Embedding(ni, 1)

    def score(self, u, i):
        return (u * self.I(i)).sum(-1) + self.bi(i).squeeze(-1)

    def rank(self, pos, neg):
        return -F.logsigmoid(neg - pos).mean()

    def forward(self, user, item_pos, item_neg):
        u = self.U(user)
        reg = 1e-4 * u.pow(2).sum()
        return self.rank(self.score(u, item_pos), self.score(u, item_neg)) + reg  # fault: positive-and-negative-exchanged


class Fixed(Step):
    def rank(self, pos, neg):
        return -F.logsigmoid(pos - neg).mean()


def example():
    torch.manual_seed(23)
    return torch.randint(0, 11, (8,)), torch.randint(0, 17, (8,)), torch.randint(0, 17, (8,))
