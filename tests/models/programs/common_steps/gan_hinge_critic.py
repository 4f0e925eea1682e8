"""Gan hinge critic.

CORRECT: hinge GAN critic step without sigmoid, generator under no_grad.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Generator(nn.Module):
    def __init__(self, z=8):
        super().__init__()
        self.fc = nn.Linear(z, 32 * 3 * 3)
        self.up = nn.Sequential(nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(16, 3, 4, 2, 1))

    def forward(self, z):
        return torch.tanh(self.up(F.relu(self.fc(z)).view(-1, 32, 3, 3)))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 16, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(16, 32, 4, 2, 1), nn.LeakyReLU(0.2))
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        return self.out(self.net(x).sum(dim=(2, 3)))


class Step(nn.Module):
    """The critic's half of a hinge GAN: no sigmoid, no labels."""

    def __init__(self):
        super().__init__()
        self.G, self.D = Generator(), Critic()

    def forward(self, real, z):
        with torch.no_grad():
            fake = self.G(z)
        d_real = self.D(real)
        d_fake = self.D(fake)
        loss = F.relu(1.0 - d_real).mean() + F.relu(1.0 + d_fake).mean()
        return loss, d_real.mean() - d_fake.mean()


def example():
    torch.manual_seed(41)
    return torch.rand(4, 3, 12, 12) * 2 - 1, torch.randn(4, 8)
