"""Trains a recurrent language model of recipes. Every position is asked for its own input token; the logits should be compared with the next token."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, vocab=65):
        super().__init__()
        self.vocab = vocab
        self.emb = nn.Embedding(vocab, 24)
        self.gru = nn.GRU(24, 48, batch_first=True)
        self.out = nn.Linear(48, vocab)

    def forward(self, text):
        hidden, _ = self.gru(self.emb(text))
        logits = self.out(hidden)
        return F.cross_entropy(logits.reshape(-1, self.vocab), text.reshape(-1))  # fault: target-in-prediction


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randint(0, 65, (5, 33)),)
