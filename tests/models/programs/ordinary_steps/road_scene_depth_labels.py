"""Trains a shared network for road scene depth and semantics with learned uncertainty weights. Each task loss is multiplied by exp(+log_var) although log_var is added as the penalty; it should be exp(-log_var)."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, classes=5):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 12, 3, padding=1), nn.ReLU())
        self.depth_head = nn.Conv2d(12, 1, 1)
        self.seg_head = nn.Conv2d(12, classes, 1)
        self.log_vars = nn.Parameter(torch.zeros(2))

    def forward(self, image, depth, labels):
        feats = self.trunk(image)
        depth_loss = F.l1_loss(self.depth_head(feats).squeeze(1), depth)
        seg_loss = F.cross_entropy(self.seg_head(feats), labels)
        losses = torch.stack([depth_loss, seg_loss])
        weighted = torch.exp(self.log_vars) * losses + self.log_vars  # fault: no-rule
        return weighted.sum()


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(2, 3, 14, 18), torch.rand(2, 14, 18) * 10, torch.randint(0, 5, (2, 14, 18)))
