"""Exported classifier that takes camera frames as uint8 NCHW, centres them around 0 and resizes to 16x16 before the CNN.

MISTAKE (silent): frame - 128 is computed in uint8 and wraps (100 becomes 228); cast to float before subtracting.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU())
        self.fc = nn.Linear(16, 5)

    def forward(self, frame):
        x = (frame - 128).float() / 128.0  # fault: byte-arithmetic-wraps
        x = F.interpolate(x, size=(16, 16), mode="bilinear", align_corners=False)
        x = self.conv(x).mean(dim=(2, 3))
        return self.fc(x).softmax(dim=1)


class Fixed(Step):
    def forward(self, frame):
        x = (frame.float() - 128) / 128.0
        x = F.interpolate(x, size=(16, 16), mode="bilinear", align_corners=False)
        x = self.conv(x).mean(dim=(2, 3))
        return self.fc(x).softmax(dim=1)


def example():
    return (torch.randint(0, 256, (3, 3, 20, 24), generator=torch.Generator().manual_seed(44)).to(torch.uint8),)


OPEN = [{0: "batch"}]
EVAL = True
