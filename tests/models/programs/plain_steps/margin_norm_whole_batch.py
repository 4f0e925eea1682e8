import torch
from torch import nn


class TransE(nn.Module):
    def __init__(self, n_ent=100, n_rel=10, dim=20, margin=1.0):
        super().__init__()
        self.ent = nn.Embedding(n_ent, dim)
        self.rel = nn.Embedding(n_rel, dim)
        self.margin = margin

    def score(self, h, r, t):
        return torch.norm(self.ent(h) + self.rel(r) - self.ent(t), p=2)  # fault: reduction-over-batch-axis

    def forward(self, h, r, t, t_neg):
        pos = self.score(h, r, t)  # fault: reduction-over-batch-axis
        neg = self.score(h, r, t_neg)
        return torch.clamp(self.margin + pos - neg, min=0).mean()


def example():
    n = 12
    return tuple(torch.randint(0, k, (n,)) for k in (100, 10, 100, 100))


Step = TransE
OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}, {0: "batch"}]
