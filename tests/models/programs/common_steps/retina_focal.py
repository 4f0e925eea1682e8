"""Retina focal.

MISTAKE (silent): focal loss p_t = exp(+bce) instead of exp(-bce).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


def sigmoid_focal_loss(logits, targets, alpha=0.25, gamma=2.0):
    bce = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    p_t = torch.exp(bce)  # fault: loss-as-probability
    alpha_t = alpha * targets + (1 - alpha) * (1 - targets)
    return alpha_t * (1 - p_t) ** gamma * bce


class RetinaHead(nn.Module):
    def __init__(self, c=16, anchors=3, classes=4):
        super().__init__()
        self.classes = classes
        self.stem = nn.Conv2d(3, c, 3, stride=4, padding=1)
        self.tower = nn.Sequential(nn.Conv2d(c, c, 3, padding=1), nn.ReLU())
        self.cls = nn.Conv2d(c, anchors * classes, 3, padding=1)

    def forward(self, x):
        y = self.cls(self.tower(F.relu(self.stem(x))))
        b, _, h, w = y.shape
        return y.view(b, -1, self.classes, h, w).permute(0, 3, 4, 1, 2).reshape(b, -1, self.classes)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = RetinaHead()

    def forward(self, image, anchor_label):
        # anchor_label: 0 = background, 1..4 = class
        logits = self.head(image)
        onehot = F.one_hot(anchor_label, 5)[..., 1:].float()
        n_pos = (anchor_label > 0).sum().clamp(min=1)
        return sigmoid_focal_loss(logits, onehot).sum() / n_pos  # fault: loss-as-probability


def example():
    g = torch.Generator().manual_seed(37)
    label = torch.randint(0, 5, (2, 3 * 4 * 4), generator=g)
    label = label * (torch.rand(2, 48, generator=g) < 0.2)
    return torch.rand(2, 3, 16, 16, generator=g), label
