"""Weighted intent.

MISTAKE (silent): confidence is [N,1], per_example is [N]: every loss gets every weight.
"""
import torch
from torch import nn


class IntentClassifier(nn.Module):
    def __init__(self, vocab=300, dim=32, n_intents=11):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.gru = nn.GRU(dim, 40, batch_first=True)
        self.head = nn.Linear(40, n_intents)

    def forward(self, tokens):
        h, _ = self.gru(self.emb(tokens))
        return self.head(h[:, -1])


class Step(nn.Module):
    """Intent classification with a confidence column coming from the annotation table."""

    def __init__(self):
        super().__init__()
        self.model = IntentClassifier()
        self.criterion = nn.CrossEntropyLoss(reduction="none")

    def forward(self, tokens, labels, confidence):
        logits = self.model(tokens)
        per_example = self.criterion(logits, labels)
        loss = (per_example * confidence).mean()  # fault: silent-broadcast-in-loss
        return loss


def example():
    torch.manual_seed(0)
    tokens = torch.randint(0, 300, (18, 9))
    labels = torch.randint(0, 11, (18,))
    return tokens, labels, torch.rand(18, 1)
