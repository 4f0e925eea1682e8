"""Simclr ntxent.

MISTAKE (silent): NT-Xent without masking the self-similarity diagonal.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SimCLR(nn.Module):
    def __init__(self, dim=20):
        super().__init__()
        self.f = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(),
            nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )
        self.g = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, dim))

    def forward(self, x):
        return F.normalize(self.g(self.f(x)), dim=-1)


def nt_xent(z1, z2, temperature):
    n = z1.size(0)
    z = torch.cat([z1, z2], dim=0)
    sim = z @ z.t() / temperature
    positives = (torch.arange(2 * n, device=z.device) + n) % (2 * n)
    return F.cross_entropy(sim, positives)  # fault: candidate-is-itself


class Step(nn.Module):
    def __init__(self, temperature=0.2):
        super().__init__()
        self.model = SimCLR()
        self.temperature = temperature

    def forward(self, view_a, view_b):
        return nt_xent(self.model(view_a), self.model(view_b), self.temperature)  # fault: candidate-is-itself


def example():
    torch.manual_seed(34)
    x = torch.rand(6, 3, 16, 16)
    return x, (x + 0.1 * torch.randn_like(x)).clamp(0, 1)
