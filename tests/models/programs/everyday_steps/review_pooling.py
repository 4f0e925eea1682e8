"""Review pooling.

MISTAKE (silent): scores are [B,T,1], softmax over the size-1 axis is always 1; dim=1 meant.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class AttnPool(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(dim, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, h):
        w = torch.softmax(self.score(h), dim=-1)  # fault: softmax-over-batch-axis
        return (w * h).sum(dim=1)


class Step(nn.Module):
    def __init__(self, vocab=4000, dim=64):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.conv = nn.Conv1d(dim, dim, 3, padding=1)
        self.pool = AttnPool(dim)
        self.head = nn.Linear(dim, 1)

    def forward(self, tokens, sentiment):
        h = self.emb(tokens).transpose(1, 2)
        h = F.relu(self.conv(h)).transpose(1, 2)
        logit = self.head(self.pool(h)).squeeze(-1)
        return F.binary_cross_entropy_with_logits(logit, sentiment)


def example():
    torch.manual_seed(0)
    return torch.randint(0, 4000, (32, 50)), torch.randint(0, 2, (32,)).float()
