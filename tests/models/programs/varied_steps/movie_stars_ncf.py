"""Neural collaborative filtering on 1 to 5 star ratings; the net gives the chance that the user likes the film.

MISTAKE (silent): the stars themselves (1 to 5) are the target of a binary cross-entropy, whose target must lie in [0, 1]; they should be rescaled, (stars - 1) / 4.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, n_users=50, n_items=80, k=8):
        super().__init__()
        self.U = nn.Embedding(n_users, k)
        self.I = nn.Embedding(n_items, k)
        self.mlp = nn.Sequential(nn.Linear(2 * k, 16), nn.ReLU(), nn.Linear(16, 1))
        self.bce = nn.BCEWithLogitsLoss()

    def target(self, stars):
        return stars.clamp(1, 5).float()

    def forward(self, user, item, stars):
        u, i = self.U(user), self.I(item)
        logit = self.mlp(torch.cat([u, i], -1))[:, 0] + (u * i).sum(-1)
        return self.bce(logit, self.target(stars))  # fault: probability-out-of-range


class Fixed(Step):
    def target(self, stars):
        return (stars.clamp(1, 5).float() - 1) / 4


def example():
    torch.manual_seed(67)
    return torch.randint(0, 50, (8,)), torch.randint(0, 80, (8,)), torch.randint(1, 6, (8,))


OPEN = [{0: "n"}, {0: "n"}, {0: "n"}]
