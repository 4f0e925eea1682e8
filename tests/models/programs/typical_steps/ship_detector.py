"""Single-stage ship detector: focal loss on anchors and smooth L1 for matched boxes.

CORRECT: sums are divided by the number of positives, not by the batch; (1 - p_t)^gamma weights BCE with logits; classes are one-hot with 0 = background cut off.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class DetHead(nn.Module):
    def __init__(self, n_classes=3):
        super().__init__()
        self.n_classes = n_classes
        self.stem = nn.Conv2d(1, 16, 3, stride=2, padding=1)
        self.cls = nn.Conv2d(16, n_classes, 3, padding=1)
        self.box = nn.Conv2d(16, 4, 3, padding=1)

    def forward(self, x):
        h = F.relu(self.stem(x))
        cls = self.cls(h).permute(0, 2, 3, 1).flatten(1, 2)
        box = self.box(h).permute(0, 2, 3, 1).flatten(1, 2)
        return cls, box


class Step(nn.Module):
    def __init__(self, alpha=0.25, gamma=2.0):
        super().__init__()
        self.head = DetHead()
        self.alpha, self.gamma = alpha, gamma

    def forward(self, image, cls_target, box_target):
        logits, boxes = self.head(image)
        onehot = F.one_hot(cls_target, self.head.n_classes + 1)[..., 1:].float()
        p = torch.sigmoid(logits)
        p_t = p * onehot + (1 - p) * (1 - onehot)
        a_t = self.alpha * onehot + (1 - self.alpha) * (1 - onehot)
        ce = F.binary_cross_entropy_with_logits(logits, onehot, reduction="none")
        positive = (cls_target > 0).float()
        num_pos = positive.sum().clamp(min=1.0)
        focal = (a_t * (1 - p_t) ** self.gamma * ce).sum() / num_pos
        reg = F.smooth_l1_loss(boxes, box_target, reduction="none").sum(-1)
        return focal + (reg * positive).sum() / num_pos


def example():
    g = torch.Generator().manual_seed(1)
    cls = torch.randint(0, 4, (5, 36), generator=g) * (torch.rand(5, 36, generator=g) > 0.8)
    return (torch.randn(5, 1, 12, 12, generator=g), cls, torch.randn(5, 36, 4, generator=g))


OPEN = [{0: "batch"}] * 3
