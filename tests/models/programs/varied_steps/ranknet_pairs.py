"""RankNet over the documents of one query: every pair with different relevance gives a logistic loss.

CORRECT: (n, 1) - (n,) is the matrix of all pair differences and is wanted here; only ordered pairs are kept by the mask.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.scorer = nn.Sequential(nn.Linear(9, 18), nn.ReLU(), nn.Linear(18, 1))

    def forward(self, docs, rel):
        s = self.scorer(docs)
        diff = s - s.squeeze(1)
        better = rel.unsqueeze(1) > rel
        loss = F.softplus(-diff) * better
        return loss.sum() / better.sum().clamp(min=1)


def example():
    torch.manual_seed(3)
    return torch.randn(7, 9), torch.randint(0, 4, (7,))
