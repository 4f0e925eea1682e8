"""Semantic segmentation, flattened pixel cross entropy.

logits are (N, C, H, W); reshape(-1, C) without moving C to the end cuts rows of the memory into
"class vectors": 5 neighbouring pixels of one class plane.  Counts agree, so it runs.
Fix: permute(0, 2, 3, 1) first.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.classes = classes
        self.stem = nn.Conv2d(3, 10, 3, 1, 1)
        self.head = nn.Conv2d(10, classes, 1)
        self.ce = nn.CrossEntropyLoss(ignore_index=255)

    def flat(self, logits):
        return logits.reshape(-1, self.classes)  # wrong: NCHW flattened to (-1, C) without permute

    def forward(self, x, target):
        z = self.head(nn.functional.gelu(self.stem(x)))
        return self.ce(self.flat(z), target.reshape(-1))  # fault: class-axis-position


class Fixed(Step):
    def flat(self, logits):
        return logits.permute(0, 2, 3, 1).reshape(-1, self.classes)


def example():
    torch.manual_seed(25)
    t = torch.randint(0, 5, (2, 6, 10))
    t[:, 0] = 255
    return torch.randn(2, 3, 6, 10), t
