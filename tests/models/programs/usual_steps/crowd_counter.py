"""Crowd counter.

MISTAKE (silent): round() has zero gradient, nothing is learnt from the loss.
"""
import torch
import torch.nn as nn


class CountHead(nn.Module):
    def __init__(self, in_ch=12):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, in_ch, 5, stride=2, padding=2), nn.ReLU(),
            nn.Conv2d(in_ch, in_ch, 3, stride=2, padding=1), nn.ReLU(),
        )
        self.density = nn.Conv2d(in_ch, 1, 1)

    def forward(self, x):
        return torch.relu(self.density(self.body(x)))


class Step(nn.Module):
    """Predict the number of people in a picture; counts are whole numbers."""

    def __init__(self):
        super().__init__()
        self.model = CountHead()
        self.loss = nn.L1Loss()

    def forward(self, image, count):
        density = self.model(image)
        total = density.flatten(1).sum(dim=1)
        n_people = torch.round(total)  # fault: loss-detached-from-parameters
        return self.loss(n_people, count)  # fault: loss-detached-from-parameters


def example():
    torch.manual_seed(0)
    return torch.rand(6, 3, 40, 56), torch.randint(0, 90, (6,)).float()
