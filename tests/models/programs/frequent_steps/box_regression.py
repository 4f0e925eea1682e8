"""Single-object localisation trained with an IoU loss; boxes are xyxy in [0, 1].

MISTAKE (silent): negative extents of non-overlapping boxes must be clamped to 0.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


def box_area(b):
    return (b[..., 2] - b[..., 0]) * (b[..., 3] - b[..., 1])


def pairwise_aligned_iou(a, b, eps=1e-6):
    lt = torch.max(a[..., :2], b[..., :2])
    rb = torch.min(a[..., 2:], b[..., 2:])
    wh = rb - lt  # fault: overlap-of-boxes-apart
    inter = wh[..., 0] * wh[..., 1]
    return inter / (box_area(a) + box_area(b) - inter + eps)


class Localizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(3, 12, 3, stride=2)
        self.c2 = nn.Conv2d(12, 24, 3, stride=2)
        self.fc = nn.Linear(24, 4)

    def forward(self, x):
        h = F.relu(self.c2(F.relu(self.c1(x)))).mean((2, 3))
        cx, cy, w, h_ = self.fc(h).sigmoid().unbind(-1)
        return torch.stack([cx - w / 2, cy - h_ / 2, cx + w / 2, cy + h_ / 2], dim=-1)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Localizer()

    def forward(self, image, gt_xyxy):
        pred = self.net(image)
        iou = pairwise_aligned_iou(pred, gt_xyxy)  # fault: overlap-of-boxes-apart
        return (1 - iou).mean() + (pred - gt_xyxy).abs().mean()


def example():
    g = torch.Generator().manual_seed(35)
    tl = torch.rand(6, 2, generator=g) * 0.5
    wh = torch.rand(6, 2, generator=g) * 0.4 + 0.1
    return torch.rand(6, 3, 16, 16, generator=g), torch.cat([tl, tl + wh], dim=1)
