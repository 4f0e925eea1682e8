"""Organ segmentation.

MISTAKE (silent): dice on the argmax has no gradient, needs softmax probabilities.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SegNet(nn.Module):
    def __init__(self, in_ch=1, width=10, n_classes=5):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(in_ch, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
        self.down = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.out = nn.Conv2d(width, n_classes, 1)

    def forward(self, x):
        e = self.enc(x)
        return self.out(e + self.up(F.relu(self.down(e))))


def dice_loss(pred, target, n_classes, smooth=1.0):
    pred_1h = F.one_hot(pred, n_classes).permute(0, 3, 1, 2).float()
    tgt_1h = F.one_hot(target, n_classes).permute(0, 3, 1, 2).float()
    inter = (pred_1h * tgt_1h).sum(dim=(0, 2, 3))
    denom = pred_1h.sum(dim=(0, 2, 3)) + tgt_1h.sum(dim=(0, 2, 3))
    return 1.0 - ((2.0 * inter + smooth) / (denom + smooth)).mean()


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = SegNet()

    def forward(self, scan, mask):
        logits = self.net(scan)
        ce = F.cross_entropy(logits, mask)
        dice = dice_loss(logits.argmax(dim=1), mask, 5)  # fault: loss-detached-from-parameters
        return ce + dice


def example():
    torch.manual_seed(0)
    return torch.randn(3, 1, 24, 32), torch.randint(0, 5, (3, 24, 32))
