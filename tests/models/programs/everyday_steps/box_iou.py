"""Box iou.

MISTAKE (silent): union lacks "- inter", IoU never exceeds one half.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    """Single object detector: IoU loss plus L1 on xyxy boxes."""

    def __init__(self, l1_w=5.0, iou_w=2.0):
        super().__init__()
        self.conv = nn.ModuleList([nn.Conv2d(3, 16, 3, 2, 1), nn.Conv2d(16, 32, 3, 2, 1), nn.Conv2d(32, 64, 3, 2, 1)])
        self.box = nn.Linear(64, 4)
        self.l1_w, self.iou_w = l1_w, iou_w

    def forward(self, img, gt):
        h = img
        for c in self.conv:
            h = F.relu(c(h))
        cx, cy, w, hgt = self.box(h.mean((2, 3))).sigmoid().unbind(-1)
        p = torch.stack([cx - w / 2, cy - hgt / 2, cx + w / 2, cy + hgt / 2], dim=-1)
        lt = torch.max(p[:, :2], gt[:, :2])
        rb = torch.min(p[:, 2:], gt[:, 2:])
        wh = (rb - lt).clamp(min=0)
        inter = wh[:, 0] * wh[:, 1]
        area_p = (p[:, 2] - p[:, 0]) * (p[:, 3] - p[:, 1])
        area_g = (gt[:, 2] - gt[:, 0]) * (gt[:, 3] - gt[:, 1])
        iou = inter / (area_p + area_g + 1e-7)  # fault: dice-without-factor
        return self.l1_w * (p - gt).abs().mean() + self.iou_w * (1 - iou).mean()


def example():
    torch.manual_seed(0)
    a = torch.rand(12, 2) * 0.5
    return torch.rand(12, 3, 64, 64), torch.cat([a, a + 0.1 + 0.3 * torch.rand(12, 2)], dim=1)
