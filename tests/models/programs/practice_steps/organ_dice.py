"""Organ segmentation with a small encoder-decoder and a soft Dice loss.

MISTAKE (silent): one_hot gives [B, H, W, C] and view makes it [B, C, H, W] without moving the axis; it has to be
permute(0, 3, 1, 2).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class TinyUNet(nn.Module):
    def __init__(self, n_class=4, ch=8):
        super().__init__()
        self.down1 = nn.Sequential(nn.Conv2d(1, ch, 3, padding=1), nn.ReLU())
        self.down2 = nn.Sequential(nn.Conv2d(ch, 2 * ch, 3, stride=2, padding=1), nn.ReLU())
        self.up = nn.ConvTranspose2d(2 * ch, ch, 2, stride=2)
        self.out = nn.Conv2d(2 * ch, n_class, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.up(self.down2(a))
        return self.out(torch.cat([a, b], dim=1))


class Step(nn.Module):
    def __init__(self, n_class=4):
        super().__init__()
        self.n_class = n_class
        self.unet = TinyUNet(n_class)

    def forward(self, scan, mask, smooth=1.0):
        prob = torch.softmax(self.unet(scan), dim=1)
        b, h, w = mask.shape
        target = F.one_hot(mask, self.n_class).view(b, self.n_class, h, w).float()  # fault: reshape-moves-axis
        inter = (prob * target).sum(dim=(2, 3))
        total = prob.sum(dim=(2, 3)) + target.sum(dim=(2, 3))
        dice = (2 * inter + smooth) / (total + smooth)
        return 1 - dice.mean()


class Fixed(Step):
    def forward(self, scan, mask, smooth=1.0):
        prob = torch.softmax(self.unet(scan), dim=1)
        target = F.one_hot(mask, self.n_class).permute(0, 3, 1, 2).float()
        inter = (prob * target).sum(dim=(2, 3))
        total = prob.sum(dim=(2, 3)) + target.sum(dim=(2, 3))
        dice = (2 * inter + smooth) / (total + smooth)
        return 1 - dice.mean()


def example():
    g = torch.Generator().manual_seed(1)
    return torch.rand(5, 1, 12, 12, generator=g), torch.randint(0, 4, (5, 12, 12), generator=g)
