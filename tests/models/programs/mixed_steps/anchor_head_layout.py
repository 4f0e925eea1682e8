"""Single-level one-stage detector: focal classification and L1 boxes on dense anchors.

MISTAKE (silent): the NCHW class map is viewed as (B, H*W*A, K) without moving the channels last.
"""
import torch
from torch import nn
from torch.nn import functional as F

A, K = 3, 4


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 16, 3, 2, 1), nn.ReLU())
        self.cls = nn.Conv2d(16, A * K, 3, padding=1)
        self.box = nn.Conv2d(16, A * 4, 3, padding=1)

    @staticmethod
    def per_anchor(t, width):
        b = t.shape[0]
        return t.permute(0, 2, 3, 1).reshape(b, -1, width)

    def class_rows(self, f):
        return self.cls(f).reshape(f.shape[0], -1, K)  # fault: class-axis-position

    def forward(self, img, onehot, deltas, positive):
        f = self.stem(img)
        logit = self.class_rows(f)  # fault: class-axis-position
        delta = self.per_anchor(self.box(f), 4)
        p = logit.sigmoid()
        ce = F.binary_cross_entropy_with_logits(logit, onehot, reduction="none")
        pt = p * onehot + (1 - p) * (1 - onehot)
        n = positive.sum().clamp(min=1.0)
        cls_loss = (ce * (1 - pt) ** 2).sum() / n
        box_loss = ((delta - deltas).abs().sum(-1) * positive).sum() / n
        return cls_loss + box_loss


class Fixed(Step):
    def class_rows(self, f):
        return self.per_anchor(self.cls(f), K)


def example():
    torch.manual_seed(3)
    n = 4 * 4 * A
    pos = (torch.rand(3, n) < 0.2).float()
    return torch.randn(3, 3, 16, 16), F.one_hot(torch.randint(0, K, (3, n)), K).float() * pos[..., None], torch.randn(3, n, 4), pos
