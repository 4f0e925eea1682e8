"""Pairwise preference loss over all hotels of one search page.

CORRECT: the (N, 1) - (1, N) differences are the wanted matrix of pairs; only pairs with a strict preference count, and the count is clamped.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Sequential(nn.Linear(13, 20), nn.ReLU(), nn.Linear(20, 1))

    def forward(self, hotels, booked):
        s = self.lin(hotels)
        diff = s - s.transpose(-1, -2)
        grade = booked.float()[..., None]
        wins = (grade - grade.transpose(-1, -2)).clamp(min=0)
        per_page = (wins * nn.functional.softplus(-diff)).sum((1, 2))
        return (per_page / wins.sum((1, 2)).clamp(min=1)).mean()


def example():
    torch.manual_seed(109)
    return torch.randn(4, 6, 13), torch.randint(0, 3, (4, 6))


OPEN = [{0: "pages", 1: "hotels"}, {0: "pages", 1: "hotels"}]
