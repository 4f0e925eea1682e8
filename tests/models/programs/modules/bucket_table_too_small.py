"""Recommender: the age of a user is put into buckets and embedded.

With 6 boundaries there are 7 buckets (0..6); the table has as many rows as boundaries.  A value above the
last boundary looks up row 6 of 6.  Fix: len(boundaries) + 1 rows.
"""
import torch
import torch.nn.functional as F
from torch import nn

EDGES = [18.0, 25.0, 35.0, 45.0, 55.0, 65.0]
OPEN = [{0: "users"}, {0: "users"}, {0: "users"}]


class Step(nn.Module):
    rows = len(EDGES)

    def __init__(self):
        super().__init__()
        self.register_buffer("edges", torch.tensor(EDGES))
        self.age = nn.Embedding(self.rows, 8)
        self.movie = nn.Embedding(100, 8)

    def forward(self, age, movie, rating):
        bucket = (age.unsqueeze(1) >= self.edges).sum(dim=1)
        u = self.age(bucket)  # fault: index-out-of-range
        score = (u * self.movie(movie)).sum(-1)
        return F.mse_loss(score, rating)


class Fixed(Step):
    rows = len(EDGES) + 1


def example():
    torch.manual_seed(39)
    return torch.tensor([17., 30., 44., 61.]), torch.tensor([3, 99, 0, 12]), torch.rand(4) * 5
