"""Hand keypoints.

CORRECT: softmax over the pixels of each joint, not over joints.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    """Integral pose regression (soft-argmax) with visibility flags."""

    def __init__(self, joints=21, size=16):
        super().__init__()
        self.c1 = nn.Conv2d(3, 32, 3, 2, 1)
        self.c2 = nn.Conv2d(32, 32, 3, 2, 1)
        self.heat = nn.Conv2d(32, joints, 1)
        self.register_buffer("grid", (torch.arange(size) + 0.5) / size)

    def forward(self, img, kpts, visible):
        hm = self.heat(F.relu(self.c2(F.relu(self.c1(img)))))
        b, j, h, w = hm.shape
        p = F.softmax(hm.view(b, j, h * w), dim=2).view(b, j, h, w)
        x = (p.sum(dim=2) * self.grid).sum(-1)
        y = (p.sum(dim=3) * self.grid).sum(-1)
        xy = torch.stack([x, y], dim=-1)
        err = (xy - kpts).abs().sum(-1)
        return (err * visible).sum() / visible.sum().clamp(min=1)


def example():
    torch.manual_seed(0)
    return torch.rand(6, 3, 64, 64), torch.rand(6, 21, 2), (torch.rand(6, 21) > 0.2).float()
