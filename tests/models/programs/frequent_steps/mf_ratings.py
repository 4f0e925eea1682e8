"""Explicit-feedback matrix factorisation (MovieLens style).

MISTAKE (silent): (B,) + (B,1) broadcasts to (B,B); biases need squeeze(1).
"""
import torch
import torch.nn as nn


class MatrixFactorization(nn.Module):
    def __init__(self, n_users, n_items, k=16):
        super().__init__()
        self.user_factors = nn.Embedding(n_users, k)
        self.item_factors = nn.Embedding(n_items, k)
        self.user_bias = nn.Embedding(n_users, 1)
        self.item_bias = nn.Embedding(n_items, 1)
        self.global_bias = nn.Parameter(torch.tensor(3.5))
        nn.init.normal_(self.user_factors.weight, std=0.05)
        nn.init.normal_(self.item_factors.weight, std=0.05)

    def forward(self, user, item):
        dot = (self.user_factors(user) * self.item_factors(item)).sum(dim=1)
        bias = self.user_bias(user) + self.item_bias(item)
        return self.global_bias + dot + bias  # fault: silent-broadcast-in-loss


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = MatrixFactorization(50, 80)

    def forward(self, user, item, rating):
        pred = self.model(user, item)
        diff = pred - rating
        return (diff ** 2).mean()


def example():
    g = torch.Generator().manual_seed(1)
    user = torch.randint(0, 50, (12,), generator=g)
    item = torch.randint(0, 80, (12,), generator=g)
    rating = torch.randint(1, 6, (12,), generator=g).float()
    return user, item, rating
