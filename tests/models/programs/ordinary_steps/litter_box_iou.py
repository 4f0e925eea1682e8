"""Trains a box regressor for litter on beaches with an IoU loss. Width and height of the intersection are not clamped at zero, so disjoint boxes get a positive overlap from two negative sides; clamp(min=0) is needed."""
import torch
from torch import nn


def to_corners(b):
    centre, size = b[..., :2], b[..., 2:]
    return centre - size / 2, centre + size / 2


def iou(pred, truth):
    p1, p2 = to_corners(pred)
    t1, t2 = to_corners(truth)
    wh = torch.minimum(p2, t2) - torch.maximum(p1, t1)  # fault: overlap-of-boxes-apart
    inter = wh[..., 0] * wh[..., 1]
    area = (p2 - p1).prod(-1) + (t2 - t1).prod(-1)
    return inter / (area - inter + 1e-6)


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(32, 40), nn.ReLU(), nn.Linear(40, 4))

    def forward(self, roi, boxes):
        pred = self.fc(roi).sigmoid()
        return 1 - iou(pred, boxes).mean()  # fault: overlap-of-boxes-apart


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(21, 32), torch.cat([0.1 + 0.8 * torch.rand(21, 2), 0.05 + 0.15 * torch.rand(21, 2)], 1))
