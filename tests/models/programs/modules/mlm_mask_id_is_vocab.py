"""BERT style masked language modelling with a fixed masking pattern.

The [MASK] id is set to vocab_size, one past the last row of the embedding: the lookup is out of range for
each masked position (IndexError in eager, Gather error in a runtime).
Fix: one more row in the table.
"""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    VOCAB = 50
    extra = 0

    def __init__(self, d=12):
        super().__init__()
        self.word = nn.Embedding(self.VOCAB + self.extra, d)
        layer = nn.TransformerEncoderLayer(d, 2, 24, dropout=0.0, batch_first=True)
        self.layer = layer
        self.lm = nn.Linear(d, self.VOCAB)

    def forward(self, ids):
        masked = torch.arange(ids.size(1)) % 5 == 2
        corrupted = torch.where(masked, self.VOCAB, ids)
        h = self.word(corrupted)  # fault: index-out-of-range
        logits = self.lm(self.layer(h))
        per = F.cross_entropy(logits.transpose(1, 2), ids, reduction="none")
        return (per * masked).sum() / masked.sum() / ids.size(0)


class Fixed(Step):
    extra = 1


def example():
    torch.manual_seed(42)
    return (torch.randint(0, 50, (3, 15)),)
