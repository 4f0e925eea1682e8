"""Trains a self-attention tagger of named entities on padded sentences. The loss averages over the padding as well, though attention masks it; it should be masked by the same mask."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, vocab=250, d=24, tags=9):
        super().__init__()
        self.embed = nn.Embedding(vocab, d, padding_idx=0)
        self.query = nn.Linear(d, d)
        self.key = nn.Linear(d, d)
        self.value = nn.Linear(d, d)
        self.norm = nn.LayerNorm(d)
        self.tag = nn.Linear(d, tags)

    def forward(self, words, tags):
        pad = words.eq(0)
        e = self.embed(words)
        weights = torch.einsum("bid,bjd->bij", self.query(e), self.key(e)) * e.shape[-1] ** -0.5
        weights = weights.masked_fill(pad.unsqueeze(1), -1e9)
        context = torch.einsum("bij,bjd->bid", weights.softmax(-1), self.value(e))
        logits = self.tag(self.norm(e + context))
        nll = -F.log_softmax(logits, dim=-1).gather(2, tags.unsqueeze(2)).squeeze(2)
        return nll.mean()  # fault: no-rule


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    words = torch.randint(1, 250, (7, 16))
    tags = torch.randint(0, 9, (7, 16))
    gone = torch.arange(16)[None] >= torch.tensor([16, 5, 9, 12, 7, 3, 10])[:, None]
    return (words.masked_fill(gone, 0), tags.masked_fill(gone, 0))
