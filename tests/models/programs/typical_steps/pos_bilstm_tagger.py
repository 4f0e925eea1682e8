"""Bidirectional LSTM part-of-speech tagger.

CORRECT: a tagger has no shift: tag t belongs to word t, and the model may see the future; padded tags are -100.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Tagger(nn.Module):
    def __init__(self, vocab=75, dim=16, hidden=12, n_tags=9):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, hidden, bidirectional=True)
        self.out = nn.Linear(2 * hidden, n_tags)

    def forward(self, words):
        e = self.embed(words).transpose(0, 1)
        h, _ = self.lstm(e)
        return self.out(h)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.tagger = Tagger()

    def forward(self, words, tags):
        logits = self.tagger(words)
        return F.cross_entropy(logits.permute(1, 2, 0), tags, ignore_index=-100)


def example():
    g = torch.Generator().manual_seed(1)
    n = torch.tensor([11, 6, 8, 4, 10])
    keep = torch.arange(11)[None] < n[:, None]
    words = torch.randint(1, 75, (5, 11), generator=g) * keep
    tags = torch.where(keep, torch.randint(0, 9, (5, 11), generator=g), -100)
    return (words, tags)


OPEN = [{0: "batch"}, {0: "batch"}]
