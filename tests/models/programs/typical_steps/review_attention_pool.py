"""Sentiment of reviews: GRU and additive attention pooling.

MISTAKE (silent): the attention softmax runs over the last axis of [B, T, 1], so each weight is 1; it should run over time (dim=1).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, vocab=100, dim=16, hidden=12):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.gru = nn.GRU(dim, hidden, batch_first=True, bidirectional=True)

    def forward(self, ids):
        out, _ = self.gru(self.embed(ids))
        return out


class Step(nn.Module):
    def __init__(self, hidden=24, n_classes=3):
        super().__init__()
        self.encoder = Encoder()
        self.proj = nn.Linear(hidden, 16)
        self.query = nn.Linear(16, 1, bias=False)
        self.classifier = nn.Linear(hidden, n_classes)

    def forward(self, ids, label):
        h = self.encoder(ids)
        energy = self.query(torch.tanh(self.proj(h)))
        alpha = torch.softmax(energy, dim=-1)  # fault: softmax-over-batch-axis
        context = (alpha * h).sum(dim=1)
        return F.cross_entropy(self.classifier(context), label)


class Fixed(Step):
    def forward(self, ids, label):
        h = self.encoder(ids)
        energy = self.query(torch.tanh(self.proj(h)))
        alpha = torch.softmax(energy, dim=1)
        context = (alpha * h).sum(dim=1)
        return F.cross_entropy(self.classifier(context), label)


def example():
    g = torch.Generator().manual_seed(1)
    return (torch.randint(1, 100, (5, 11), generator=g), torch.randint(0, 3, (5,), generator=g))


OPEN = [{0: "batch"}, {0: "batch"}]
