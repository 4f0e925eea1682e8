"""Gan two losses.

MISTAKE (silent): reuses the logits of fake.detach(), generator gets no gradient.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Generator(nn.Module):
    def __init__(self, z_dim=12, out_dim=30):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(z_dim, 40), nn.ReLU(), nn.Linear(40, out_dim), nn.Tanh())

    def forward(self, z):
        return self.net(z)


class Discriminator(nn.Module):
    def __init__(self, in_dim=30):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(in_dim, 50), nn.LeakyReLU(0.2), nn.Linear(50, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.G = Generator()
        self.D = Discriminator()

    def forward(self, real, z):
        fake = self.G(z)
        fake_logits = self.D(fake.detach())
        real_logits = self.D(real)
        ones, zeros = torch.ones_like(real_logits), torch.zeros_like(fake_logits)
        d_loss = 0.5 * (
            F.binary_cross_entropy_with_logits(real_logits, ones)
            + F.binary_cross_entropy_with_logits(fake_logits, zeros)
        )
        g_loss = F.binary_cross_entropy_with_logits(fake_logits, ones)  # fault: loss-detached-from-parameters
        return d_loss, g_loss


def example():
    torch.manual_seed(0)
    return torch.rand(22, 30) * 2 - 1, torch.randn(22, 12)
