"""Age regressor.

MISTAKE (silent): standardised age truncated to an integer.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class FaceNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(i, o, 3, stride=2, padding=1) for i, o in [(3, 8), (8, 16), (16, 32)]])
        self.fc = nn.Linear(32, 1)

    def forward(self, x):
        for c in self.convs:
            x = F.leaky_relu(c(x), 0.1)
        return self.fc(x.mean((-2, -1))).flatten()


class Step(nn.Module):
    age_mean = 38.0
    age_std = 17.5

    def __init__(self):
        super().__init__()
        self.net = FaceNet()

    def forward(self, img, age):
        pred = self.net(img)
        target = ((age - self.age_mean) / self.age_std).long()  # fault: target-cut-to-integers
        loss = (pred - target).abs().mean()
        mae_years = (pred * self.age_std + self.age_mean - age).abs().mean()
        return loss, mae_years


def example():
    torch.manual_seed(0)
    return torch.rand(32, 3, 48, 48), torch.rand(32) * 70 + 5
