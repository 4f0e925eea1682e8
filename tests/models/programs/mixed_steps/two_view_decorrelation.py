"""Self-supervised decorrelation (cross-correlation of two views towards the identity).

MISTAKE (silent): the standardisation takes mean and std over the features (dim 1) although the cross-correlation is over the batch (dim 0).
"""
import torch
from torch import nn


class Step(nn.Module):
    lam = 5e-3

    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 10))

    def standardise(self, z):
        return (z - z.mean(1, keepdim=True)) / (z.std(1, keepdim=True) + 1e-5)  # fault: class-axis-position

    def forward(self, view1, view2):
        za = self.standardise(self.backbone(view1))  # fault: class-axis-position
        zb = self.standardise(self.backbone(view2))  # fault: class-axis-position
        c = za.T @ zb / za.shape[0]
        eye = torch.eye(c.shape[0])
        on = ((c - 1) ** 2 * eye).sum()
        off = (c ** 2 * (1 - eye)).sum()
        return on + self.lam * off


class Fixed(Step):
    def standardise(self, z):
        return (z - z.mean(0, keepdim=True)) / (z.std(0, keepdim=True) + 1e-5)


def example():
    g = torch.Generator().manual_seed(51)
    x = torch.randn(8, 20, generator=g)
    return x + 0.1 * torch.randn(8, 20, generator=g), x + 0.1 * torch.randn(8, 20, generator=g)
