"""Trains three heads that estimate length, width and height of a parcel. The height head is compared with the width column (copy and paste); it should be column 2."""
import torch
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(26, 44), nn.ReLU())
        self.length = nn.Linear(44, 1)
        self.width = nn.Linear(44, 1)
        self.height = nn.Linear(44, 1)
        self.criterion = nn.SmoothL1Loss()

    def forward(self, scan, dims):
        h = self.backbone(scan)
        loss_l = self.criterion(self.length(h), dims[:, 0:1])
        loss_w = self.criterion(self.width(h), dims[:, 1:2])
        loss_h = self.criterion(self.height(h), dims[:, 1:2])  # fault: column-predicted-twice
        return loss_l + loss_w + loss_h


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(22, 26), torch.rand(22, 3) * 2)
