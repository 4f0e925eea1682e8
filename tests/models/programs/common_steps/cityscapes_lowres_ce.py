"""Cityscapes lowres ce.

MISTAKE (silent): class-id label map resized with bilinear interpolation.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SegNet(nn.Module):
    def __init__(self, n_classes=19):
        super().__init__()
        self.down = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
        )
        self.aspp = nn.ModuleList(nn.Conv2d(32, 8, 3, padding=r, dilation=r) for r in (1, 2))
        self.cls = nn.Conv2d(16, n_classes, 1)

    def forward(self, x):
        f = self.down(x)
        return self.cls(torch.cat([F.relu(b(f)) for b in self.aspp], dim=1))


class Step(nn.Module):
    """Loss at the output stride of the network to save memory."""

    def __init__(self):
        super().__init__()
        self.net = SegNet()

    def forward(self, image, label_map):
        logits = self.net(image)
        small = F.interpolate(label_map.unsqueeze(1).float(), size=logits.shape[-2:], mode="bilinear", align_corners=False)  # fault: interpolated-classes
        target = small.squeeze(1).long()
        return F.cross_entropy(logits, target)


def example():
    g = torch.Generator().manual_seed(46)
    return torch.rand(2, 3, 24, 32, generator=g), torch.randint(0, 19, (2, 24, 32), generator=g)
