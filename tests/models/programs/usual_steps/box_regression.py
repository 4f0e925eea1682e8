"""Box regression.

MISTAKE (silent): not clamped at 0, disjoint boxes get negative sides and a wrong (even positive) intersection.
"""
import torch
import torch.nn as nn


def box_area(b):
    return (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])


def iou(pred, target, eps=1e-7):
    lt = torch.max(pred[:, :2], target[:, :2])
    rb = torch.min(pred[:, 2:], target[:, 2:])
    wh = rb - lt  # fault: overlap-of-boxes-apart
    inter = wh[:, 0] * wh[:, 1]
    union = box_area(pred) + box_area(target) - inter
    return inter / (union + eps)


class Step(nn.Module):
    """Box head on RoI features: cxcywh -> xyxy, IoU loss plus L1."""

    def __init__(self, roi_dim=52):
        super().__init__()
        self.head = nn.Sequential(nn.Linear(roi_dim, 40), nn.ReLU(), nn.Linear(40, 4))

    def decode(self, raw):
        c = raw[:, :2].sigmoid()
        wh = raw[:, 2:].sigmoid() * 0.5 + 0.01
        return torch.cat([c - wh / 2, c + wh / 2], dim=1)

    def forward(self, roi_feats, gt_boxes):
        boxes = self.decode(self.head(roi_feats))
        iou_loss = (1.0 - iou(boxes, gt_boxes)).mean()  # fault: overlap-of-boxes-apart
        l1 = (boxes - gt_boxes).abs().sum(dim=1).mean()
        return 2.0 * iou_loss + 5.0 * l1


def example():
    torch.manual_seed(0)
    c = torch.rand(15, 2) * 0.6
    return torch.randn(15, 52), torch.cat([c, c + 0.1 + 0.2 * torch.rand(15, 2)], dim=1)
