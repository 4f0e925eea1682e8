"""Wgan faces.

CORRECT: Wasserstein critic, no labels, no log.
"""
import torch
import torch.nn as nn


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(3, 16, 4, 2, 1)
        self.c2 = nn.Conv2d(16, 32, 4, 2, 1)
        self.fc = nn.Linear(32 * 8 * 8, 1)

    def forward(self, x):
        h = nn.functional.leaky_relu(self.c1(x), 0.2)
        h = nn.functional.leaky_relu(self.c2(h), 0.2)
        return self.fc(h.flatten(1))


class Generator(nn.Module):
    def __init__(self, z=24):
        super().__init__()
        self.fc = nn.Linear(z, 32 * 8 * 8)
        self.u1 = nn.ConvTranspose2d(32, 16, 4, 2, 1)
        self.u2 = nn.ConvTranspose2d(16, 3, 4, 2, 1)

    def forward(self, z):
        h = torch.relu(self.fc(z)).view(-1, 32, 8, 8)
        return torch.tanh(self.u2(torch.relu(self.u1(h))))


class Step(nn.Module):
    """WGAN; the trainer clips critic weights after each critic step and steps each loss with its own optimizer."""

    def __init__(self, drift=1e-3):
        super().__init__()
        self.g, self.d = Generator(), Critic()
        self.drift = drift

    def forward(self, real_u8, z):
        real = real_u8.float() / 127.5 - 1.0
        fake = self.g(z)
        s_real, s_fake = self.d(real), self.d(fake.detach())
        loss_d = s_fake.mean() - s_real.mean() + self.drift * s_real.pow(2).mean()
        loss_g = -self.d(fake).mean()
        return loss_d, loss_g


def example():
    torch.manual_seed(0)
    return torch.randint(0, 256, (8, 3, 32, 32), dtype=torch.uint8), torch.randn(8, 24)
