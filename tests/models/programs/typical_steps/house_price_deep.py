"""Regression of house prices from tabular features.

MISTAKE (silent): predictions [N, 1] against prices [N] broadcast to [N, N] in the MSE; squeeze the last axis first.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class PriceNet(nn.Module):
    def __init__(self, n_features=13, hidden=32):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(n_features, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
        )
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.head(self.body(x))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = PriceNet()
        self.criterion = nn.MSELoss()
        self.register_buffer("mean", torch.linspace(-0.5, 0.5, 13))
        self.register_buffer("std", torch.linspace(0.8, 1.5, 13))

    def forward(self, features, price):
        x = (features - self.mean) / self.std
        pred = self.net(x)
        loss = self.criterion(pred, price)  # fault: silent-broadcast-in-loss
        return loss


class Fixed(Step):
    def forward(self, features, price):
        x = (features - self.mean) / self.std
        pred = self.net(x).squeeze(-1)
        loss = self.criterion(pred, price)
        return loss


def example():
    g = torch.Generator().manual_seed(1)
    return (torch.randn(6, 13, generator=g), torch.rand(6, generator=g) * 3)


OPEN = [{0: "batch"}, {0: "batch"}]
