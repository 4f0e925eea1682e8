"""Age regression on small face crops with a hand-written Huber loss and a little L2 on the head.

MISTAKE (silent): the head gives (B, 1) and age is (B,), so pred - age is (B, B): every prediction is compared with every age. The right form squeezes the last axis of the head.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.fc = nn.Linear(16, 1)
        self.delta = 5.0

    def predict(self, x):
        x = torch.relu(self.conv1(x))
        x = torch.relu(self.conv2(x))
        return 40 + 10 * self.fc(x.mean(dim=(2, 3)))

    def forward(self, faces, age):
        pred = self.predict(faces)
        err = (pred - age).abs()  # fault: silent-broadcast-in-loss
        quad = err.clamp(max=self.delta)
        huber = 0.5 * quad ** 2 + self.delta * (err - quad)
        return huber.mean() + 1e-4 * self.fc.weight.pow(2).sum()


class Fixed(Step):
    def predict(self, x):
        return super().predict(x).squeeze(-1)


def example():
    g = torch.Generator().manual_seed(1)
    return torch.rand(6, 3, 16, 16, generator=g), torch.randint(5, 80, (6,), generator=g).float()


OPEN = [{0: "batch"}, {0: "batch"}]
