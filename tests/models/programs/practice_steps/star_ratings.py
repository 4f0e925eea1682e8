"""Ordinal regression (CORAL) of one to five stars from user and item embeddings.

MISTAKE (silent): the stars go from 1 to 5 and the levels are made as if they began at 0, so the first
threshold is always passed and 4 and 5 stars are the same; it should be stars - 1.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class RatingModel(nn.Module):
    def __init__(self, n_users=30, n_items=40, dim=12, n_levels=5):
        super().__init__()
        self.user = nn.Embedding(n_users, dim)
        self.item = nn.Embedding(n_items, dim)
        self.score = nn.Sequential(nn.Linear(2 * dim, 16), nn.ReLU(), nn.Linear(16, 1, bias=False))
        self.thresholds = nn.Parameter(torch.linspace(1.0, -1.0, n_levels - 1))

    def forward(self, u, i):
        s = self.score(torch.cat([self.user(u), self.item(i)], dim=1))
        return s + self.thresholds  # [B, 4] logits of "more than level k"


class Step(nn.Module):
    n_levels = 5

    def __init__(self):
        super().__init__()
        self.model = RatingModel(n_levels=self.n_levels)

    def forward(self, user, item, stars):
        logits = self.model(user, item)
        levels = (stars.unsqueeze(1) > torch.arange(self.n_levels - 1)).float()  # fault: levels-counted-otherwise
        loss = F.binary_cross_entropy_with_logits(logits, levels)
        with torch.no_grad():
            predicted = 1 + (logits > 0).sum(dim=1)
            mae = (predicted - stars).abs().float().mean()
        return loss, mae


class Fixed(Step):
    def forward(self, user, item, stars):
        logits = self.model(user, item)
        levels = ((stars - 1).unsqueeze(1) > torch.arange(self.n_levels - 1)).float()
        loss = F.binary_cross_entropy_with_logits(logits, levels)
        with torch.no_grad():
            predicted = 1 + (logits > 0).sum(dim=1)
            mae = (predicted - stars).abs().float().mean()
        return loss, mae


def example():
    g = torch.Generator().manual_seed(1)
    return (
        torch.randint(0, 30, (7,), generator=g),
        torch.randint(0, 40, (7,), generator=g),
        torch.tensor([5, 1, 4, 3, 2, 5, 4]),
    )


OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]
