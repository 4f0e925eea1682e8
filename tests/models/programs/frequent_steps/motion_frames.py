"""Action recognition on frame differences of a short gray-scale clip.

MISTAKE (silent): uint8 subtraction wraps around for negative differences, cast before subtracting.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class MotionNet(nn.Module):
    def __init__(self, in_ch, n_classes):
        super().__init__()
        self.conv1 = nn.Conv2d(in_ch, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 24, 3, padding=1)
        self.head = nn.Linear(24, n_classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.relu(self.conv2(x))
        return self.head(x.mean(dim=(2, 3)))


class Step(nn.Module):
    def __init__(self, n_frames=5, n_classes=6):
        super().__init__()
        self.net = MotionNet(n_frames - 1, n_classes)

    def forward(self, frames, label):
        # frames: (B, T, H, W) straight from the decoder, uint8
        motion = frames[:, 1:] - frames[:, :-1]  # fault: unsigned-difference-wraps
        motion = motion.float() / 255.0
        logits = self.net(motion)
        return F.cross_entropy(logits, label)


def example():
    g = torch.Generator().manual_seed(15)
    frames = torch.randint(0, 256, (4, 5, 12, 12), generator=g, dtype=torch.uint8)
    return frames, torch.randint(0, 6, (4,), generator=g)
