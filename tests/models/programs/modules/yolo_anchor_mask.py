"""Tiny-YOLO box regression: each scale picks its anchors through an anchor mask.

The mask (6, 7, 8) was copied from the full model with nine anchors; the tiny model has six.  Index out of
range at the first step.  Fix: mask (3, 4, 5).
"""
import torch
from torch import nn


class Step(nn.Module):
    MASK = (6, 7, 8)

    def __init__(self):
        super().__init__()
        self.register_buffer("anchors", torch.tensor(
            [[10., 14.], [23., 27.], [37., 58.], [81., 82.], [135., 169.], [344., 319.]]) / 416)
        self.register_buffer("mask", torch.tensor(self.MASK))
        self.head = nn.Conv2d(8, 3 * 4, 1)

    def forward(self, feat, target):
        n, _, h, w = feat.shape
        raw = self.head(feat).view(n, 3, 4, h, w)
        xy = raw[:, :, :2].sigmoid()
        wh = torch.index_select(self.anchors, 0, self.mask)  # fault: index-out-of-range
        wh = raw[:, :, 2:].clamp(max=4.0).exp() * wh[None, :, :, None, None]
        return (torch.cat([xy, wh], dim=2) - target).abs().mean()


class Fixed(Step):
    MASK = (3, 4, 5)


def example():
    torch.manual_seed(43)
    return torch.randn(2, 8, 5, 5), torch.rand(2, 3, 4, 5, 5)
