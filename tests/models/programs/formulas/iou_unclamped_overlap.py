"""IoU loss between predicted and reference boxes (x1,y1,x2,y2) without clamping the overlap at zero.

For boxes apart in both directions the two negative sides multiply to a positive "intersection".
Fix: (rb - lt).clamp(min=0).
"""
import torch
from torch import nn


def area(b):
    return (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def overlap(self, lt, rb):
        wh = rb - lt
        return wh[:, 0] * wh[:, 1]

    def forward(self, f, gt):
        c, s = self.fc(f).split(2, 1)
        wh = torch.exp(s)
        p = torch.cat([c - wh / 2, c + wh / 2], 1)
        inter = self.overlap(torch.maximum(p[:, :2], gt[:, :2]), torch.minimum(p[:, 2:], gt[:, 2:]))  # fault: overlap-of-boxes-apart
        iou = inter / (area(p) + area(gt) - inter + 1e-7)
        return (1 - iou).mean()


class Fixed(Step):
    def overlap(self, lt, rb):
        wh = (rb - lt).clamp(min=0)
        return wh[:, 0] * wh[:, 1]


def example():
    torch.manual_seed(16)
    a = torch.randn(6, 2)
    return torch.randn(6, 8), torch.cat([a, a + torch.rand(6, 2) + .5], 1)
