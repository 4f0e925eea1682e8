"""Frame differencing front end for an intrusion detector: two uint8 frames, one label.

MISTAKE (silent): the two frames are subtracted as uint8, so that every darkening wraps to a large number. Convert first.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2), nn.LeakyReLU(0.1),
            nn.Conv2d(8, 16, 3, stride=2), nn.LeakyReLU(0.1),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 1))
        self.loss = nn.BCEWithLogitsLoss()

    def motion(self, now, before):
        return (now - before).to(torch.float32).div(255.0)  # fault: unsigned-difference-wraps

    def forward(self, now, before, intruder):
        m = self.motion(now, before)  # fault: unsigned-difference-wraps
        return self.loss(self.net(m)[:, 0], intruder)


class Fixed(Step):
    def motion(self, now, before):
        return (now.float() - before.float()) / 255.0


def example():
    torch.manual_seed(0)
    return (torch.randint(0, 256, (4, 3, 20, 20), dtype=torch.uint8), torch.randint(0, 256, (4, 3, 20, 20), dtype=torch.uint8),
            torch.tensor([1., 0., 0., 1.]))


OPEN = [{0: "n"}, {0: "n"}, {0: "n"}]
