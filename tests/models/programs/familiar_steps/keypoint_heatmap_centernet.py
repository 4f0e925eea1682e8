"""Trains keypoint heat maps with the CenterNet focal loss and masked offsets."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, joints=5):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.heat = nn.Conv2d(16, joints, 1)
        self.off = nn.Conv2d(16, 2, 1)

    def forward(self, image, heatmap, offset, center):
        f = F.relu(self.stem(image))
        x = self.heat(f)
        p = torch.sigmoid(x)
        pos = heatmap.eq(1).float()
        at_peak = (1 - p).pow(2) * F.logsigmoid(x) * pos
        around = (1 - heatmap).pow(4) * p.pow(2) * F.logsigmoid(-x) * (1 - pos)
        n = pos.sum().clamp(min=1)
        heat_loss = -(at_peak.sum() + around.sum()) / n
        m = center.unsqueeze(1).float()
        off_loss = ((self.off(f) - offset).abs() * m).sum() / m.sum().clamp(min=1)
        return heat_loss + off_loss


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    heat = torch.rand(3, 5, 12, 10) * 0.6
    center = torch.zeros(3, 12, 10, dtype=torch.bool)
    for b in range(3):
        for j in range(5):
            heat[b, j, 2 * j + b, j + b] = 1.0
            center[b, 2 * j + b, j + b] = True
    return (torch.randn(3, 3, 24, 20), heat, torch.rand(3, 2, 12, 10), center)
