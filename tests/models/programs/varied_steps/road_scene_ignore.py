"""Semantic segmentation with an 8-bit label map in which 255 means "do not care".

CORRECT: the uint8 map is cast to int64 and 255 is no class of the head, but it is the ignore_index; the border weight (B, H, W) multiplies the loss of the same shape and is 0 at ignored pixels.
"""
import torch
from torch import nn
import torch.nn.functional as F

IGNORE = 255


class Step(nn.Module):
    def __init__(self, classes=6):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 14, 3, padding=1)
        self.conv2 = nn.Conv2d(14, classes, 1)

    def forward(self, image, label, border):
        x = image.permute(0, 3, 1, 2).float().sub(127.5).div(127.5)
        logits = self.conv2(F.gelu(self.conv1(x)))
        y = label.long()
        ce = F.cross_entropy(logits, y, ignore_index=IGNORE, reduction="none")
        w = (1 + border) * (y != IGNORE)
        return (ce * w).sum() / w.sum().clamp(min=1e-6)


def example():
    g = torch.Generator().manual_seed(10)
    label = torch.randint(0, 6, (3, 8, 9), generator=g)
    label[:, 0] = 255
    return torch.randint(0, 256, (3, 8, 9, 3), generator=g).to(torch.uint8), label.to(torch.uint8), torch.rand(3, 8, 9, generator=g)


OPEN = [{0: "b"}, {0: "b"}, {0: "b"}]
