"""Trains a recurrent language model of server log lines. The (batch, time, vocab) logits are reshaped to (batch, vocab, time) by view, which scrambles the axes; they should be transposed."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, vocab=40):
        super().__init__()
        self.vocab = vocab
        self.embed = nn.Embedding(vocab, 18)
        self.rnn = nn.GRU(18, 26, batch_first=True)
        self.out = nn.Linear(26, vocab)

    def forward(self, tokens):
        inp, tgt = tokens[:, :-1], tokens[:, 1:]
        hidden, _ = self.rnn(self.embed(inp))
        logits = self.out(hidden)
        logits = logits.view(logits.size(0), self.vocab, -1)  # fault: class-axis-position
        return F.cross_entropy(logits, tgt)


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randint(0, 40, (6, 13)),)
