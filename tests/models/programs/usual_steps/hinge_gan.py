"""Hinge gan.

CORRECT: discriminator step must not reach the generator.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class G(nn.Module):
    def __init__(self, z=10, n_cls=6):
        super().__init__()
        self.emb = nn.Embedding(n_cls, z)
        self.fc = nn.Linear(z, 24 * 4 * 4)
        self.up = nn.Sequential(nn.ConvTranspose2d(24, 12, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(12, 1, 4, 2, 1), nn.Tanh())

    def forward(self, z, y):
        return self.up(self.fc(z * self.emb(y)).view(-1, 24, 4, 4))


class D(nn.Module):
    def __init__(self, n_cls=6):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 12, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(12, 24, 4, 2, 1), nn.LeakyReLU(0.2))
        self.lin = nn.Linear(24, 1)
        self.proj = nn.Embedding(n_cls, 24)

    def forward(self, x, y):
        h = self.body(x).sum((2, 3))
        return self.lin(h).squeeze(1) + (self.proj(y) * h).sum(1)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.g, self.d = G(), D()

    def forward(self, real, y, z):
        fake = self.g(z, y)
        d_real = self.d(real, y)
        d_fake = self.d(fake.detach(), y)
        d_loss = F.relu(1.0 - d_real).mean() + F.relu(1.0 + d_fake).mean()
        g_loss = -self.d(fake, y).mean()
        return d_loss, g_loss


def example():
    torch.manual_seed(0)
    return torch.rand(8, 1, 16, 16) * 2 - 1, torch.randint(0, 6, (8,)), torch.randn(8, 10)
