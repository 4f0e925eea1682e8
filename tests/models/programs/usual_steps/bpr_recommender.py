"""Bpr recommender.

MISTAKE (silent): sign exchanged, pushes negative items above the positive ones.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class MatrixFactorization(nn.Module):
    def __init__(self, n_users=120, n_items=350, dim=18):
        super().__init__()
        self.user = nn.Embedding(n_users, dim)
        self.item = nn.Embedding(n_items, dim)
        self.item_bias = nn.Embedding(n_items, 1)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)
        nn.init.zeros_(self.item_bias.weight)

    def score(self, u, i):
        return (self.user(u) * self.item(i)).sum(-1) + self.item_bias(i).squeeze(-1)


class Step(nn.Module):
    def __init__(self, reg=1e-4):
        super().__init__()
        self.mf = MatrixFactorization()
        self.reg = reg

    def forward(self, user, pos_item, neg_item):
        pos = self.mf.score(user, pos_item)
        neg = self.mf.score(user, neg_item)
        bpr = -F.logsigmoid(neg - pos).mean()  # fault: positive-and-negative-exchanged
        l2 = self.mf.user(user).pow(2).sum(-1).mean() + self.mf.item(pos_item).pow(2).sum(-1).mean()
        return bpr + self.reg * l2


def example():
    torch.manual_seed(0)
    return torch.randint(0, 120, (32,)), torch.randint(0, 350, (32,)), torch.randint(0, 350, (32,))
