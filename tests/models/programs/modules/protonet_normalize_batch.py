"""Prototypical network episode with cosine similarity.

F.normalize(q, dim=0) scales each feature over the queries instead of each query to unit
length: queries of an episode influence each other and the score is not a cosine.
Fix: dim=-1.
"""
import torch
import torch.nn.functional as F
from torch import nn

OPEN = [None, {0: "queries"}, {0: "queries"}]


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.phi = nn.Linear(20, 12)
        self.scale = nn.Parameter(torch.tensor(10.0))

    def unit(self, q):
        return F.normalize(q, dim=0)  # wrong: normalised over the batch of queries

    def forward(self, support, query, label):
        # support: (ways, shots, features)
        proto = F.normalize(self.phi(support).mean(1), dim=-1)
        q = self.unit(self.phi(query))  # fault: reduction-over-batch-axis
        logits = self.scale * F.linear(q, proto)
        return F.nll_loss(F.log_softmax(logits, -1), label)


class Fixed(Step):
    def unit(self, q):
        return F.normalize(q, dim=-1)


def example():
    torch.manual_seed(32)
    return torch.randn(4, 5, 20), torch.randn(9, 20), torch.randint(0, 4, (9,))
