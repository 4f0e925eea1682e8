"""Binary lesion segmentation with a tiny U-Net, BCE and dice.

MISTAKE (silent): the soft dice coefficient itself is added to the loss; it should be 1 - dice.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class TinyUNet(nn.Module):
    def __init__(self, base=6):
        super().__init__()
        self.down = nn.Conv2d(1, base, 3, padding=1)
        self.mid = nn.Conv2d(base, 2 * base, 3, padding=1)
        self.up = nn.ConvTranspose2d(2 * base, base, 2, stride=2)
        self.out = nn.Conv2d(2 * base, 1, 1)

    def forward(self, x):
        d = F.relu(self.down(x))
        m = F.relu(self.mid(F.max_pool2d(d, 2)))
        u = F.relu(self.up(m))
        return self.out(torch.cat([u, d], dim=1))


class Step(nn.Module):
    def __init__(self, smooth=1.0):
        super().__init__()
        self.unet = TinyUNet()
        self.smooth = smooth

    def forward(self, image, mask):
        logits = self.unet(image)
        bce = F.binary_cross_entropy_with_logits(logits, mask)
        p = torch.sigmoid(logits).flatten(1)
        t = mask.flatten(1)
        inter = (p * t).sum(1)
        dice = (2 * inter + self.smooth) / (p.sum(1) + t.sum(1) + self.smooth)  # fault: overlap-lowered
        return bce + dice.mean()


class Fixed(Step):
    def forward(self, image, mask):
        logits = self.unet(image)
        bce = F.binary_cross_entropy_with_logits(logits, mask)
        p = torch.sigmoid(logits).flatten(1)
        t = mask.flatten(1)
        inter = (p * t).sum(1)
        dice = (2 * inter + self.smooth) / (p.sum(1) + t.sum(1) + self.smooth)
        return bce + (1 - dice.mean())


def example():
    g = torch.Generator().manual_seed(1)
    return (torch.randn(5, 1, 16, 16, generator=g), (torch.rand(5, 1, 16, 16, generator=g) > 0.8).float())


OPEN = [{0: "batch"}, {0: "batch"}]
