"""Distils a slot tagger of dialogue utterances token by token. Both softmaxes run over the time axis (dim 1) of the (batch, time, tags) logits; they should run over the tags (dim 2)."""
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, width, tags=6, vocab=50):
        super().__init__()
        self.emb = nn.Embedding(vocab, width)
        self.mix = nn.Conv1d(width, width, 3, padding=1)
        self.cls = nn.Linear(width, tags)

    def forward(self, tokens):
        h = self.emb(tokens)
        h = h + torch.relu(self.mix(h.transpose(1, 2))).transpose(1, 2)
        return self.cls(h)


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.big = Tagger(40)
        self.small = Tagger(10)
        self.kl = nn.KLDivLoss(reduction="sum")

    def forward(self, tokens):
        tau = 2.0
        wanted = torch.softmax(self.big(tokens).detach() / tau, dim=1)  # fault: no-rule
        given = torch.log_softmax(self.small(tokens) / tau, dim=1)  # fault: no-rule
        return self.kl(given, wanted) * tau * tau / tokens.numel()


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randint(0, 50, (7, 13)),)
