"""Rating prediction by biased matrix factorisation: user . item + user bias + item bias + global mean.

MISTAKE (silent): the bias embeddings are [B, 1] and the dot product is [B]; their sum is [B, B] and so is the error. Squeeze the biases.
"""
import torch
import torch.nn as nn


class Step(nn.Module):
    def __init__(self, users=30, items=40, k=8):
        super().__init__()
        self.P = nn.Embedding(users, k)
        self.Q = nn.Embedding(items, k)
        self.bu = nn.Embedding(users, 1)
        self.bi = nn.Embedding(items, 1)
        self.mu = nn.Parameter(torch.tensor(3.5))

    def predict(self, u, i):
        dot = (self.P(u) * self.Q(i)).sum(dim=1)
        return dot + self.bu(u) + self.bi(i) + self.mu  # fault: silent-broadcast-in-loss

    def forward(self, user, item, rating):
        err = rating - self.predict(user, item)  # fault: silent-broadcast-in-loss
        reg = self.P(user).pow(2).sum(1) + self.Q(item).pow(2).sum(1)
        return err.pow(2).mean() + 0.02 * reg.mean()


class Fixed(Step):
    def predict(self, u, i):
        dot = (self.P(u) * self.Q(i)).sum(dim=1)
        return dot + self.bu(u).squeeze(1) + self.bi(i).squeeze(1) + self.mu


def example():
    torch.manual_seed(2)
    return torch.randint(0, 30, (6,)), torch.randint(0, 40, (6,)), torch.randint(1, 6, (6,)).float()


OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]
