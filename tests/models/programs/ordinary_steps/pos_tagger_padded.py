"""Trains a part-of-speech tagger with a time-major bidirectional GRU, padded tags being -100."""
import torch
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, words=75, tags=8):
        super().__init__()
        self.words = nn.Embedding(words, 16, padding_idx=0)
        self.gru = nn.GRU(16, 14, bidirectional=True)
        self.tagger = nn.Linear(28, tags)
        self.loss = nn.CrossEntropyLoss(ignore_index=-100)

    def forward(self, sentence, tags):
        steps = self.words(sentence.t())
        states, _ = self.gru(steps)
        scores = self.tagger(states)
        return self.loss(scores.permute(1, 2, 0), tags)


def example():
    """A tuple of tensors, with realistic dtypes."""
    lengths = torch.tensor([11, 4, 7])
    pad = torch.arange(11)[None, :] >= lengths[:, None]
    words = torch.randint(1, 75, (3, 11)).masked_fill(pad, 0)
    tags = torch.randint(0, 8, (3, 11)).masked_fill(pad, -100)
    return (words, tags)
