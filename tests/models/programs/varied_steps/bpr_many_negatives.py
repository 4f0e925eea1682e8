"""Bayesian personalised ranking with 5 sampled negatives per positive.

CORRECT: pos is kept as [B, 1] so that pos - neg is [B, 5], each negative against its own user's positive; softplus(-d) = -logsigmoid(d).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, users=25, items=60, k=10):
        super().__init__()
        self.U, self.I = nn.Embedding(users, k), nn.Embedding(items, k)
        self.b = nn.Embedding(items, 1)

    def forward(self, user, pos_item, neg_items):
        u = self.U(user)
        pos = (u * self.I(pos_item)).sum(-1, keepdim=True) + self.b(pos_item)
        neg = torch.bmm(self.I(neg_items), u.unsqueeze(-1)).squeeze(-1) + self.b(neg_items).squeeze(-1)
        return F.softplus(neg - pos).mean()


def example():
    torch.manual_seed(113)
    return torch.randint(0, 25, (6,)), torch.randint(0, 60, (6,)), torch.randint(0, 60, (6, 5))


OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]
