"""Generalised IoU loss for box regression (ltrb offsets exponentiated, so boxes are valid); intersections
clamped, areas positive, foreground mask normalises."""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.reg = nn.Conv2d(6, 4, 3, padding=1)
        self.ctr = nn.Conv2d(6, 1, 3, padding=1)

    def forward(self, feat, gt, fg):
        # gt (N, H, W, 4) xyxy, fg (N, H, W) bool
        H, W = feat.shape[-2:]
        gy, gx = torch.meshgrid(torch.arange(H) + 0.5, torch.arange(W) + 0.5, indexing="ij")
        d = self.reg(feat).clamp(max=5).exp().permute(0, 2, 3, 1)
        box = torch.stack([gx - d[..., 0], gy - d[..., 1], gx + d[..., 2], gy + d[..., 3]], -1)
        lt = torch.maximum(box[..., :2], gt[..., :2])
        rb = torch.minimum(box[..., 2:], gt[..., 2:])
        inter = (rb - lt).clamp(min=0).prod(-1)
        area = lambda b: (b[..., 2:] - b[..., :2]).clamp(min=0).prod(-1)
        union = area(box) + area(gt) - inter
        hull = (torch.maximum(box[..., 2:], gt[..., 2:]) - torch.minimum(box[..., :2], gt[..., :2])).prod(-1)
        giou = inter / union.clamp(min=1e-6) - (hull - union) / hull.clamp(min=1e-6)
        m = fg.float()
        obj = nn.functional.binary_cross_entropy_with_logits(self.ctr(feat).squeeze(1), m)
        return ((1 - giou) * m).sum() / m.sum().clamp(min=1) + obj


def example():
    torch.manual_seed(74)
    a = torch.rand(2, 4, 6, 2) * 3
    return torch.randn(2, 6, 4, 6), torch.cat([a, a + 1 + torch.rand_like(a)], -1), torch.rand(2, 4, 6) > 0.5
