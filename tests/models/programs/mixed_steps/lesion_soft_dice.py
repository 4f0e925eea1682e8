"""Binary lesion segmentation with soft Dice plus a weighted BCE.

MISTAKE (silent): the factor 2 of the Dice numerator is missing, the loss is at least 0.5 even for a perfect mask.
"""
import torch
from torch import nn
import torch.nn.functional as F


class UpBlock(nn.Module):
    def __init__(self, cin, cskip, cout):
        super().__init__()
        self.conv = nn.Conv2d(cin + cskip, cout, 3, padding=1)

    def forward(self, x, skip):
        x = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
        return F.relu(self.conv(torch.cat([x, skip], 1)))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.up, self.out = UpBlock(16, 8, 8), nn.Conv2d(8, 1, 1)

    def dice(self, prob, mask):
        inter = (prob * mask).sum(dim=(1, 2, 3))
        total = prob.sum(dim=(1, 2, 3)) + mask.sum(dim=(1, 2, 3))
        return (inter + 1.0) / (total + 1.0)  # fault: dice-without-factor

    def forward(self, scan, mask):
        a = F.relu(self.c1(scan))
        logits = self.out(self.up(F.relu(self.c2(a)), a))
        dice = self.dice(logits.sigmoid(), mask)  # fault: dice-without-factor
        return (1 - dice).mean() + 0.5 * F.binary_cross_entropy_with_logits(logits, mask)


class Fixed(Step):
    def dice(self, prob, mask):
        inter = (prob * mask).sum(dim=(1, 2, 3))
        total = prob.sum(dim=(1, 2, 3)) + mask.sum(dim=(1, 2, 3))
        return (2 * inter + 1.0) / (total + 1.0)


def example():
    torch.manual_seed(19)
    return torch.randn(3, 1, 12, 12), (torch.rand(3, 1, 12, 12) < 0.3).float()


OPEN = [{0: "batch"}, {0: "batch"}]
