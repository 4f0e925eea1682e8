"""Lung seg bce dice.

MISTAKE (silent): hard threshold inside the Dice loss, non-differentiable.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class UNetMini(nn.Module):
    def __init__(self, c=8):
        super().__init__()
        self.d1 = nn.Conv2d(1, c, 3, padding=1)
        self.d2 = nn.Conv2d(c, 2 * c, 3, padding=1)
        self.u1 = nn.ConvTranspose2d(2 * c, c, 2, stride=2)
        self.out = nn.Conv2d(2 * c, 1, 1)

    def forward(self, x):
        s = F.relu(self.d1(x))
        b = F.relu(self.d2(F.max_pool2d(s, 2)))
        return self.out(torch.cat([self.u1(b), s], dim=1))


class DiceLoss(nn.Module):
    def __init__(self, smooth=1.0):
        super().__init__()
        self.smooth = smooth

    def forward(self, logits, target):
        pred = (torch.sigmoid(logits) > 0.5).float()  # fault: loss-detached-from-parameters
        inter = (pred * target).sum(dim=(1, 2, 3))
        total = pred.sum(dim=(1, 2, 3)) + target.sum(dim=(1, 2, 3))
        return 1 - ((2 * inter + self.smooth) / (total + self.smooth)).mean()


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.unet = UNetMini()
        self.bce = nn.BCEWithLogitsLoss()
        self.dice = DiceLoss()

    def forward(self, xray, lung_mask):
        logits = self.unet(xray)
        return 0.5 * self.bce(logits, lung_mask) + 0.5 * self.dice(logits, lung_mask)


def example():
    g = torch.Generator().manual_seed(57)
    return torch.rand(3, 1, 16, 16, generator=g), (torch.rand(3, 1, 16, 16, generator=g) < 0.4).float()
