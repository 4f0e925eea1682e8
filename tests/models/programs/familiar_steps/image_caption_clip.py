"""Trains an image and a caption tower with the symmetric CLIP loss. The caption embedding isn't normalised before the similarity divided by the temperature; both should be unit vectors."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, dim=20, vocab=200):
        super().__init__()
        self.vision = nn.Sequential(
            nn.Conv2d(3, 12, 5, stride=4), nn.GELU(), nn.Flatten(), nn.Linear(12 * 49, dim)
        )
        self.words = nn.Embedding(vocab, 32)
        self.text_proj = nn.Linear(32, dim)
        self.logit_scale = nn.Parameter(torch.tensor(2.659))

    def encode_image(self, image):
        v = self.vision(image)
        return v / v.norm(dim=-1, keepdim=True)

    def encode_text(self, ids):
        t = self.words(ids).mean(dim=1)
        return self.text_proj(t)  # fault: vectors-not-normalised

    def forward(self, image, ids):
        v = self.encode_image(image)
        t = self.encode_text(ids)
        logits = self.logit_scale.exp() * v @ t.t()  # fault: vectors-not-normalised
        labels = torch.arange(image.shape[0])
        return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(10, 3, 29, 29), torch.randint(0, 200, (10, 7)))
