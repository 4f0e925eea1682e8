"""Intent classifier on bag-of-words embeddings; returns the loss and the batch accuracy.

MISTAKE (silent): argmax(keepdim=True) gives [B, 1], and == with labels [B] compares every prediction with every label; drop keepdim.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, vocab=200, n_intents=5):
        super().__init__()
        self.emb = nn.Embedding(vocab, 24)
        self.fc = nn.Linear(24, n_intents)

    def forward(self, tokens, intent):
        logits = self.fc(self.emb(tokens).mean(dim=1))
        loss = F.cross_entropy(logits, intent)
        pred = logits.argmax(dim=1, keepdim=True)
        acc = (pred == intent).float().mean()  # fault: silent-broadcast-in-loss
        return loss, acc


class Fixed(Step):
    def forward(self, tokens, intent):
        logits = self.fc(self.emb(tokens).mean(dim=1))
        loss = F.cross_entropy(logits, intent)
        pred = logits.argmax(dim=1)
        acc = (pred == intent).float().mean()
        return loss, acc


def example():
    torch.manual_seed(55)
    return torch.randint(0, 200, (8, 6)), torch.randint(0, 5, (8,))


OPEN = [{0: "batch"}, {0: "batch"}]
