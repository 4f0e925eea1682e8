"""Trains a ship box regressor with the IoU loss. The overlap's width and height aren't clamped at zero, so two negative sides give a positive area; clamp(min=0) is missing."""
import torch
import torch.nn.functional as F
from torch import nn


def to_corners(b):
    cx, cy, w, h = b.unbind(-1)
    return torch.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], dim=-1)


def pair_iou(a, b):
    lt = torch.max(a[:, :2], b[:, :2])
    rb = torch.min(a[:, 2:], b[:, 2:])
    wh = rb - lt  # fault: overlap-of-boxes-apart
    inter = wh[:, 0] * wh[:, 1]
    area_a = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
    area_b = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    return inter / (area_a + area_b - inter + 1e-7)


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.roi = nn.Sequential(nn.Linear(30, 40), nn.ReLU(), nn.Linear(40, 4))

    def forward(self, roi_features, boxes):
        pred = torch.sigmoid(self.roi(roi_features))
        iou = pair_iou(to_corners(pred), to_corners(boxes))  # fault: overlap-of-boxes-apart
        return (1 - iou).mean() + 0.5 * F.l1_loss(pred, boxes)


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(21, 30), torch.rand(21, 4) * 0.4 + 0.1)
