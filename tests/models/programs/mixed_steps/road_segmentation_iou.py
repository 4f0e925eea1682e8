"""Road scene segmentation; the cross-entropy pixels that the net already gets right are down-weighted.

MISTAKE (silent): argmax over the last axis (image columns) of the NCHW scores instead of the class axis; it broadcasts on square crops.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, classes=8):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 12, 3, 2, 1), nn.ReLU(True), nn.Conv2d(12, 24, 3, 2, 1), nn.ReLU(True))
        self.head = nn.Conv2d(24, classes, 1)

    def decide(self, scores):
        return scores.argmax(-1)  # fault: class-axis-position

    def forward(self, image, lab):
        scores = F.interpolate(self.head(self.down(image)), scale_factor=2.0, mode="nearest")
        ce = F.cross_entropy(scores, lab, reduction="none")
        right = (self.decide(scores) == lab).float()  # fault: class-axis-position
        weight = 1.0 - 0.5 * right
        return (ce * weight).sum() / weight.sum()


class Fixed(Step):
    def decide(self, scores):
        return scores.argmax(1)


def example():
    torch.manual_seed(14)
    return torch.rand(3, 3, 16, 16), torch.randint(0, 8, (3, 8, 8))
