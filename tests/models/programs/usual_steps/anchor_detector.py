"""Anchor detector.

CORRECT: [A,1,2] against [1,M,2], IoU matrix of anchors and ground truth.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


def pairwise_iou(a, b):
    lt = torch.maximum(a[:, None, :2], b[None, :, :2])
    rb = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh[..., 0] * wh[..., 1]
    area_a = (a[:, 2:] - a[:, :2]).prod(dim=1)
    area_b = (b[:, 2:] - b[:, :2]).prod(dim=1)
    return inter / (area_a[:, None] + area_b[None, :] - inter + 1e-9)


class Step(nn.Module):
    """One image: anchors are matched to boxes, focal-free objectness + smooth L1 offsets."""

    def __init__(self, d=32, thr=0.3):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(d, 40), nn.ReLU())
        self.obj, self.reg = nn.Linear(40, 1), nn.Linear(40, 4)
        self.thr = thr

    def forward(self, anchor_feats, anchors, gt):
        h = self.trunk(anchor_feats)
        with torch.no_grad():
            best_iou, match = pairwise_iou(anchors, gt).max(dim=1)
            pos = (best_iou > self.thr).float()
        cls = F.binary_cross_entropy_with_logits(self.obj(h).squeeze(1), pos)
        offsets = gt[match] - anchors
        reg = F.smooth_l1_loss(self.reg(h), offsets, reduction="none").sum(dim=1)
        return cls + (reg * pos).sum() / pos.sum().clamp(min=1.0)


def example():
    torch.manual_seed(0)
    c, g = torch.rand(48, 2) * 0.7, torch.rand(5, 2) * 0.7
    return torch.randn(48, 32), torch.cat([c, c + 0.25], 1), torch.cat([g, g + 0.22], 1)
