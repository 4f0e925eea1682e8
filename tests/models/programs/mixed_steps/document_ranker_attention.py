"""Score a document by attention pooling of its sentence vectors, listwise loss over candidates.

MISTAKE (silent): the attention weights are normalised over the candidate documents (dim 1), not over the sentences (dim 2).
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    """sents: (batch, docs, sentences, dim); query: (batch, dim)"""

    def __init__(self, dim=16):
        super().__init__()
        self.q = nn.Linear(dim, dim, bias=False)
        self.k = nn.Linear(dim, dim, bias=False)
        self.v = nn.Linear(dim, dim)
        self.scale = dim ** -0.5

    def weights(self, scores):
        return scores.softmax(dim=1)  # fault: class-axis-position

    def forward(self, query, sents, clicked):
        q = self.q(query)
        k, v = self.k(sents), self.v(sents)
        scores = torch.einsum("bd,bnsd->bns", q, k) * self.scale
        w = self.weights(scores)  # fault: class-axis-position
        docs = torch.einsum("bns,bnsd->bnd", w, v)
        rank = torch.einsum("bd,bnd->bn", q, docs)
        return F.cross_entropy(rank, clicked)


class Fixed(Step):
    def weights(self, scores):
        return scores.softmax(dim=2)


def example():
    torch.manual_seed(1)
    return torch.randn(3, 16), torch.randn(3, 5, 7, 16), torch.tensor([0, 4, 2])


OPEN = [{0: "batch"}, {0: "batch", 2: "sentences"}, {0: "batch"}]
