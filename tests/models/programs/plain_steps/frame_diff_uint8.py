import torch
from torch import nn


class NextFrame(nn.Module):
    """predict the change between two video frames"""

    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 3, 3, padding=1))

    def forward(self, frame, next_frame):
        motion = (next_frame - frame).float() / 255.0  # fault: unsigned-difference-wraps
        pred = self.conv(frame.float() / 255.0)
        return ((pred - motion) ** 2).mean()


def example():
    f = torch.randint(0, 256, (2, 3, 10, 10), dtype=torch.uint8)
    return (f, torch.randint(0, 256, (2, 3, 10, 10), dtype=torch.uint8))


Step = NextFrame
