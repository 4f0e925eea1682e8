"""Single-object localisation: the network gives one box (x1, y1, x2, y2) an image, loss is 1 - IoU.

MISTAKE (silent): width and height of the overlap are not clamped at 0; for boxes apart on both axes two negatives give a positive overlap. Needs clamp(min=0).
"""
import torch
import torch.nn as nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 8, 3, 2, 1), nn.ReLU(), nn.Flatten())
        self.box = nn.Linear(8 * 5 * 5, 4)

    def boxes(self, img):
        cx, cy, w, h = torch.sigmoid(self.box(self.stem(img))).unbind(-1)
        return torch.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], -1)

    def forward(self, img, gt):
        p = self.boxes(img)
        lt = torch.max(p[:, :2], gt[:, :2])
        rb = torch.min(p[:, 2:], gt[:, 2:])
        wh = rb - lt
        inter = wh[:, 0] * wh[:, 1]  # fault: overlap-of-boxes-apart
        area_p = (p[:, 2] - p[:, 0]) * (p[:, 3] - p[:, 1])
        area_g = (gt[:, 2] - gt[:, 0]) * (gt[:, 3] - gt[:, 1])
        iou = inter / (area_p + area_g - inter + 1e-6)
        return (1 - iou).mean()


class Fixed(Step):
    def forward(self, img, gt):
        p = self.boxes(img)
        lt = torch.max(p[:, :2], gt[:, :2])
        rb = torch.min(p[:, 2:], gt[:, 2:])
        wh = (rb - lt).clamp(min=0)
        inter = wh[:, 0] * wh[:, 1]
        area_p = (p[:, 2] - p[:, 0]) * (p[:, 3] - p[:, 1])
        area_g = (gt[:, 2] - gt[:, 0]) * (gt[:, 3] - gt[:, 1])
        iou = inter / (area_p + area_g - inter + 1e-6)
        return (1 - iou).mean()


def example():
    torch.manual_seed(23)
    c, s = torch.rand(5, 2), torch.rand(5, 2) * 0.1 + 0.02
    c[0] = torch.tensor([0.02, 0.03])
    return 3 * torch.randn(5, 3, 20, 20), torch.cat([c - s, c + s], 1)
