"""Trains a two-tower model that aligns recipe texts with dish photos by a symmetric contrastive loss. The cosine similarities are multiplied by the temperature 0.07, which flattens the softmax; they should be divided by it."""
import torch
import torch.nn.functional as F
from torch import nn


class TextTower(nn.Module):
    def __init__(self, vocab=60, dim=16):
        super().__init__()
        self.table = nn.Embedding(vocab, 24)
        self.lin = nn.Linear(24, dim)

    def forward(self, ids):
        return self.lin(self.table(ids).mean(1))


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.temperature = 0.07
        self.text = TextTower()
        self.photo = nn.Sequential(nn.Linear(40, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, photo_feats, recipe_ids):
        p = F.normalize(self.photo(photo_feats), dim=-1)
        r = F.normalize(self.text(recipe_ids), dim=-1)
        logits = p @ r.t() * self.temperature  # fault: temperature-multiplied
        labels = torch.arange(logits.size(0), device=logits.device)
        loss_p = F.cross_entropy(logits, labels)
        loss_r = F.cross_entropy(logits.t(), labels)
        return 0.5 * (loss_p + loss_r)


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(18, 40), torch.randint(0, 60, (18, 7)))
