"""Trains a volume segmentation of organs with the Tversky loss, summed over batch and space and averaged over classes."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, organs=4):
        super().__init__()
        self.organs = organs
        self.net = nn.Sequential(nn.Conv3d(1, 6, 3, padding=1), nn.ReLU(), nn.Conv3d(6, organs, 1))

    def forward(self, volume, organ):
        p = F.softmax(self.net(volume), dim=1)
        g = F.one_hot(organ, self.organs).permute(0, 4, 1, 2, 3).to(p.dtype)
        axes = (0, 2, 3, 4)
        tp = (p * g).sum(axes)
        fp = (p * (1 - g)).sum(axes)
        fn = ((1 - p) * g).sum(axes)
        tversky = (tp + 1.0) / (tp + 0.3 * fp + 0.7 * fn + 1.0)
        return 1.0 - tversky.mean()


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(2, 1, 6, 10, 12), torch.randint(0, 4, (2, 6, 10, 12)))
