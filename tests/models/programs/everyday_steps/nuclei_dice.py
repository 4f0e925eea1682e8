"""Nuclei dice.

MISTAKE (silent): hard threshold, the dice term has no gradient.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    """BCE plus soft dice for nuclei segmentation."""

    def __init__(self, smooth=1.0, w_dice=0.7):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
            nn.Conv2d(16, 16, 3, padding=2, dilation=2), nn.ReLU(),
            nn.Conv2d(16, 1, 1))
        self.smooth = smooth
        self.w_dice = w_dice

    def forward(self, x, y):
        logits = self.net(x)
        bce = F.binary_cross_entropy_with_logits(logits, y)
        pred = (torch.sigmoid(logits) > 0.5).float()  # fault: loss-detached-from-parameters
        inter = (pred * y).sum(dim=(1, 2, 3))
        total = pred.sum(dim=(1, 2, 3)) + y.sum(dim=(1, 2, 3))
        dice = (2 * inter + self.smooth) / (total + self.smooth)
        return (1 - self.w_dice) * bce + self.w_dice * (1 - dice).mean()


def example():
    torch.manual_seed(0)
    return torch.rand(6, 1, 64, 64), (torch.rand(6, 1, 64, 64) > 0.8).float()
