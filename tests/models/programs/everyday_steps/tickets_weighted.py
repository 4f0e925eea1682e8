"""Tickets weighted.

MISTAKE (silent): [N] * [N,1] is an outer product, weights no longer follow samples.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class TextClf(nn.Module):
    def __init__(self, vocab=2000, dim=48, n_cls=7):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.fc1 = nn.Linear(dim, 96)
        self.fc2 = nn.Linear(96, n_cls)

    def forward(self, ids):
        h = self.emb(ids).mean(dim=1)
        return self.fc2(F.relu(self.fc1(h)))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = TextClf()
        self.register_buffer("class_w", torch.tensor([0.3, 1.2, 0.8, 2.5, 1.0, 0.7, 4.0]))

    def forward(self, ids, label):
        logits = self.model(ids)
        ce = F.cross_entropy(logits, label, reduction="none")
        w = self.class_w[label].view(-1, 1)
        loss = (ce * w).sum() / w.sum()  # fault: silent-broadcast-in-loss
        acc = (logits.argmax(-1) == label).float().mean()
        return loss, acc


def example():
    torch.manual_seed(0)
    return torch.randint(0, 2000, (64, 20)), torch.randint(0, 7, (64,))
