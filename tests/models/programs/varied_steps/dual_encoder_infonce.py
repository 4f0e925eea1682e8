"""Query/document dual encoder, in-batch negatives, InfoNCE with a fixed temperature on cosine similarities.

MISTAKE (silent): both embeddings are normalised along dim 0 (the batch), so the scores are not cosines and depend on the batch; dim=1 (or -1).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


def tower(n_in, n_out):
    return nn.Sequential(nn.Linear(n_in, 32), nn.ReLU(), nn.Linear(32, n_out))


class Step(nn.Module):
    axis = 0

    def __init__(self):
        super().__init__()
        self.q_tower = tower(12, 8)
        self.d_tower = tower(20, 8)
        self.tau = 0.07

    def forward(self, query, doc):
        q = F.normalize(self.q_tower(query), dim=self.axis)  # fault: reduction-over-batch-axis
        d = F.normalize(self.d_tower(doc), dim=self.axis)  # fault: reduction-over-batch-axis
        sims = q @ d.T / self.tau
        gold = torch.arange(query.size(0))
        return F.cross_entropy(sims, gold)


class Fixed(Step):
    axis = -1


def example():
    torch.manual_seed(21)
    return torch.randn(6, 12), torch.randn(6, 20)


OPEN = [{0: "batch"}, {0: "batch"}]
