"""Trains a segmentation of retina layers. The (B, C, H, W) logits are viewed as (-1, C) without moving the class axis last; permute(0, 2, 3, 1) is missing."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, n_classes=5):
        super().__init__()
        self.n_classes = n_classes
        self.down = nn.Conv2d(1, 12, 3, stride=2, padding=1)
        self.mid = nn.Conv2d(12, 12, 3, padding=1)
        self.up = nn.ConvTranspose2d(12, 12, 2, stride=2)
        self.last = nn.Conv2d(13, n_classes, 1)

    def forward(self, scan, layer):
        x = F.relu(self.down(scan))
        x = F.relu(self.mid(x))
        x = F.relu(self.up(x))
        logits = self.last(torch.cat([x, scan], 1))
        flat = logits.contiguous().view(-1, self.n_classes)  # fault: class-axis-position
        return F.cross_entropy(flat, layer.view(-1))


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(4, 1, 16, 22), torch.randint(0, 5, (4, 16, 22)))
