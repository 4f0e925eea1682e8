"""Behavioural cloning: steering angle from a front camera image (numpy images, channels last).

MISTAKE (silent): view only reinterprets the NHWC memory, channels need permute(0, 3, 1, 2).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class PilotNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 12, 5, stride=2)
        self.conv2 = nn.Conv2d(12, 18, 3, stride=2)
        self.fc1 = nn.Linear(18 * 3 * 5, 30)
        self.fc2 = nn.Linear(30, 1)

    def forward(self, x):
        x = F.elu(self.conv1(x))
        x = F.elu(self.conv2(x))
        x = F.elu(self.fc1(x.flatten(1)))
        return torch.tanh(self.fc2(x)).squeeze(1)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = PilotNet()
        self.mse = nn.MSELoss()

    def forward(self, image, steering):
        b, h, w, c = image.shape
        x = image.view(b, c, h, w)  # fault: class-axis-position
        x = x / 127.5 - 1.0
        return self.mse(self.net(x), steering)


def example():
    g = torch.Generator().manual_seed(45)
    img = torch.randint(0, 256, (4, 18, 26, 3), generator=g).float()
    return img, torch.rand(4, generator=g) * 2 - 1
