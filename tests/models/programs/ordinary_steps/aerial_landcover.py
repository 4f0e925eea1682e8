"""Trains land cover segmentation of aerial tiles. The softmax runs over the image columns (the last axis) and not over the classes; it should be dim 1."""
import torch
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, classes=6):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(4, 10, 3, stride=2, padding=1), nn.ReLU())
        self.up = nn.ConvTranspose2d(10, 10, 2, stride=2)
        self.last = nn.Conv2d(10, classes, 1)
        self.to_prob = nn.Softmax(dim=-1)  # fault: class-axis-position softmax-over-batch-axis
        self.nll = nn.NLLLoss(ignore_index=255)

    def forward(self, tile, cover):
        h = torch.relu(self.up(self.down(tile)))
        prob = self.to_prob(self.last(h))  # fault: class-axis-position softmax-over-batch-axis
        return self.nll(torch.log(prob + 1e-8), cover)


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(3, 4, 12, 16), torch.randint(0, 6, (3, 12, 16)))
