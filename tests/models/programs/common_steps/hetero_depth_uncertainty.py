"""Kendall & Gal: heteroscedastic regression of depth, the net predicts mean and log variance.

MISTAKE (silent): Gaussian NLL multiplies the squared error with exp(+log_var) instead of exp(-log_var).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class DepthNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc1 = nn.Conv2d(3, 12, 3, stride=2, padding=1)
        self.enc2 = nn.Conv2d(12, 24, 3, padding=1)
        self.mean = nn.Conv2d(24, 1, 1)
        self.logvar = nn.Conv2d(24, 1, 1)

    def forward(self, x):
        h = F.elu(self.enc2(F.elu(self.enc1(x))))
        h = F.interpolate(h, scale_factor=2, mode="nearest")
        return self.mean(h), self.logvar(h)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = DepthNet()

    def forward(self, rgb, depth):
        mu, log_var = self.net(rgb)
        valid = (depth > 0).float()
        sq = (depth - mu) ** 2
        nll = 0.5 * (sq * torch.exp(log_var) + log_var)  # fault: one-sided-loss
        return (nll * valid).sum() / valid.sum().clamp(min=1)


def example():
    g = torch.Generator().manual_seed(31)
    depth = torch.rand(3, 1, 12, 14, generator=g) * 10
    depth[:, :, :2] = 0
    return torch.rand(3, 3, 12, 14, generator=g), depth
