"""Frame motion.

MISTAKE (silent): uint8 subtraction wraps around, must convert to float first.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class MotionNet(nn.Module):
    def __init__(self, n_cls=5):
        super().__init__()
        self.c1 = nn.Conv2d(3, 12, 3, stride=2, padding=1)
        self.c2 = nn.Conv2d(12, 24, 3, stride=2, padding=1)
        self.fc = nn.Linear(24, n_cls)

    def forward(self, x):
        h = F.relu(self.c2(F.relu(self.c1(x))))
        return self.fc(h.mean(dim=(2, 3)))


class Step(nn.Module):
    """Gesture recognition from frame differences; clip is uint8 [B, T, 3, H, W]."""

    def __init__(self):
        super().__init__()
        self.net = MotionNet()

    def forward(self, clip, label):
        diff = clip[:, 1:] - clip[:, :-1]  # fault: unsigned-difference-wraps
        x = diff.float() / 255.0
        b, t = x.shape[:2]
        logits = self.net(x.flatten(0, 1)).view(b, t, -1).mean(dim=1)
        return F.cross_entropy(logits, label)


def example():
    torch.manual_seed(0)
    return torch.randint(0, 256, (4, 7, 3, 32, 32), dtype=torch.uint8), torch.randint(0, 5, (4,))
