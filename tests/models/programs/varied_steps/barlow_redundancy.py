"""Barlow Twins: cross-correlation of the standardised embeddings of two views should be the identity.

MISTAKE (silent): z is standardised over the batch, but a @ b.T gives an N x N matrix of samples; the feature correlation is a.T @ b / N (D x D).
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(15, 40), nn.ReLU(), nn.Linear(40, 10))
        self.lambd = 0.005

    def forward(self, y1, y2):
        z1, z2 = self.f(y1), self.f(y2)
        z1 = (z1 - z1.mean(0)) / (z1.std(0) + 1e-6)
        z2 = (z2 - z2.mean(0)) / (z2.std(0) + 1e-6)
        c = z1 @ z2.T / z1.shape[0]  # fault: class-axis-position
        on = (torch.diagonal(c) - 1).pow(2).sum()
        off = c.pow(2).sum() - torch.diagonal(c).pow(2).sum()
        return on + self.lambd * off


class Fixed(Step):
    def forward(self, y1, y2):
        z1, z2 = self.f(y1), self.f(y2)
        z1 = (z1 - z1.mean(0)) / (z1.std(0) + 1e-6)
        z2 = (z2 - z2.mean(0)) / (z2.std(0) + 1e-6)
        c = z1.T @ z2 / z1.shape[0]
        on = (torch.diagonal(c) - 1).pow(2).sum()
        off = c.pow(2).sum() - torch.diagonal(c).pow(2).sum()
        return on + self.lambd * off


def example():
    torch.manual_seed(53)
    x = torch.randn(8, 15)
    return x + 0.2 * torch.randn(8, 15), x + 0.2 * torch.randn(8, 15)
