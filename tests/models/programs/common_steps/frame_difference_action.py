"""Frame difference action.

MISTAKE (silent): uint8 subtraction of frames wraps around before the float cast.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class MotionNet(nn.Module):
    def __init__(self, n_frames, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(n_frames - 1, 16, 3, stride=2)
        self.conv2 = nn.Conv2d(16, 24, 3, stride=2)
        self.fc = nn.Linear(24, classes)

    def forward(self, motion):
        x = F.relu(self.conv1(motion))
        x = F.relu(self.conv2(x))
        return self.fc(x.amax(dim=(2, 3)))


class Step(nn.Module):
    """Action recognition from differences of consecutive grey-scale video frames."""

    def __init__(self, n_frames=5, classes=8):
        super().__init__()
        self.net = MotionNet(n_frames, classes)

    def forward(self, clip, action):
        # clip: (B, T, H, W) uint8 straight from the decoder
        motion = clip[:, 1:] - clip[:, :-1]  # fault: unsigned-difference-wraps
        motion = motion.float() / 255.0
        return F.cross_entropy(self.net(motion), action)


def example():
    g = torch.Generator().manual_seed(40)
    return (torch.randint(0, 256, (4, 5, 18, 18), generator=g, dtype=torch.uint8),
            torch.randint(0, 8, (4,), generator=g))
