"""Trains the generator of a relativistic average GAN of galaxy images, where fake images should look more real than the average real one and real ones less."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.gen = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 144))
        self.disc = nn.Sequential(nn.Linear(144, 40), nn.LeakyReLU(0.2), nn.Linear(40, 1))
        for p in self.disc.parameters():
            p.requires_grad_(False)

    def forward(self, galaxies, z):
        fake = torch.sigmoid(self.gen(z))
        c_real = self.disc(galaxies.flatten(1))
        c_fake = self.disc(fake)
        fake_vs_real = c_fake - c_real.mean(0, keepdim=True)
        real_vs_fake = c_real - c_fake.mean(0, keepdim=True)
        up = F.softplus(-fake_vs_real).mean()
        down = F.softplus(real_vs_fake).mean()
        return (up + down) / 2


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.rand(10, 1, 12, 12), torch.randn(14, 10))
