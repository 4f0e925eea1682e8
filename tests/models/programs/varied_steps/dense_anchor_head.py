"""One-level anchor detector: class logits for A anchors at each cell against per-anchor class numbers (0 is background).

MISTAKE (silent): the (B, A*C, H, W) map is viewed straight as (B, H*W*A, C), so the class axis mixes pixels; it needs permute(0, 2, 3, 1) first.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    A, C = 3, 5

    def __init__(self):
        super().__init__()
        self.neck = nn.Conv2d(3, 16, 3, stride=4, padding=1)
        self.cls = nn.Conv2d(16, self.A * self.C, 1)
        self.reg = nn.Conv2d(16, self.A * 4, 1)

    def flat(self, m, k):
        return m.reshape(m.shape[0], -1, k)  # fault: class-axis-position

    def forward(self, image, labels, deltas):
        f = F.relu(self.neck(image))
        logits = self.flat(self.cls(f), self.C)  # fault: class-axis-position
        boxes = self.flat(self.reg(f), 4)
        cls_loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        pos = (labels > 0).unsqueeze(-1)
        reg = F.smooth_l1_loss(boxes, deltas, reduction="none") * pos
        return cls_loss + reg.sum() / pos.sum().clamp(min=1)


class Fixed(Step):
    def flat(self, m, k):
        return m.permute(0, 2, 3, 1).reshape(m.shape[0], -1, k)


def example():
    torch.manual_seed(29)
    return torch.randn(3, 3, 16, 16), torch.randint(0, 5, (3, 48)), torch.randn(3, 48, 4)
