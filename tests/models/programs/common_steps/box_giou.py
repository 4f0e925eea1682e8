"""Single-object localiser on a product data set, trained with an IoU loss.

MISTAKE (silent): ioU intersection width/height not clamped at 0.
"""
import torch
import torch.nn as nn


def box_iou_paired(a, b, eps=1e-7):
    """a, b: (N, 4) boxes as x1, y1, x2, y2."""
    lt = torch.max(a[:, :2], b[:, :2])
    rb = torch.min(a[:, 2:], b[:, 2:])
    wh = rb - lt  # fault: overlap-of-boxes-apart
    inter = wh[:, 0] * wh[:, 1]
    area_a = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
    area_b = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    return inter / (area_a + area_b - inter + eps)


class Localiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(),
            nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        )
        self.reg = nn.Linear(128, 4)

    def forward(self, x):
        cx, cy, w, h = torch.sigmoid(self.reg(self.body(x))).unbind(-1)
        return torch.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], dim=-1)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Localiser()

    def forward(self, image, gt_box):
        pred = self.net(image)
        iou = box_iou_paired(pred, gt_box)  # fault: overlap-of-boxes-apart
        return (1 - iou).mean() + (pred - gt_box).abs().mean(), iou


def example():
    g = torch.Generator().manual_seed(39)
    xy = torch.rand(5, 2, generator=g) * 0.5
    return torch.rand(5, 3, 16, 16, generator=g), torch.cat([xy, xy + 0.1 + 0.3 * torch.rand(5, 2, generator=g)], 1)
