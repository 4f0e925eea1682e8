"""Trains a causal convolutional language model of chat messages, with rolled targets whose last column and padding carry no weight."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, vocab=55, dim=18):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        nn.init.normal_(self.emb.weight, std=0.1)
        self.c1 = nn.Conv1d(dim, dim, 3)
        self.c2 = nn.Conv1d(dim, dim, 3, dilation=2)
        self.bias = nn.Parameter(torch.zeros(vocab))

    def forward(self, tokens):
        h = self.emb(tokens).transpose(1, 2)
        h = h + F.gelu(self.c1(F.pad(h, (2, 0))))
        h = h + F.gelu(self.c2(F.pad(h, (4, 0))))
        logits = torch.einsum("bdt,vd->bvt", h, self.emb.weight) + self.bias[:, None]
        following = torch.roll(tokens, shifts=-1, dims=1)
        t = tokens.size(1)
        keep = (torch.arange(t) < t - 1) & (following != 0)
        nll = F.cross_entropy(logits, following, reduction="none")
        return (nll * keep).sum() / keep.sum()


def example():
    """A tuple of tensors, with realistic dtypes."""
    lengths = torch.tensor([15, 9, 12, 6])
    ids = torch.randint(1, 55, (4, 15))
    return (ids.masked_fill(torch.arange(15)[None, :] >= lengths[:, None], 0),)
