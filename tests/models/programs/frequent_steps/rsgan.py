"""Relativistic GAN (RSGAN); both losses in one pass, generator first.

CORRECT: unusual, and as it is meant.
"""
import torch
import torch.nn as nn


class G(nn.Module):
    def __init__(self, nz=10):
        super().__init__()
        self.fc = nn.Linear(nz, 16 * 3 * 3)
        self.deconv = nn.Sequential(
            nn.ReLU(), nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(8, 1, 4, 2, 1), nn.Tanh())

    def forward(self, z):
        return self.deconv(self.fc(z).view(-1, 16, 3, 3))


class D(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(8, 16, 4, 2, 1), nn.LeakyReLU(0.2))
        self.out = nn.Linear(16 * 3 * 3, 1)

    def forward(self, x):
        return self.out(self.conv(x).flatten(1)).view(-1)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.g, self.d = G(), D()
        self.bce = nn.BCEWithLogitsLoss()

    def forward(self, real_u8, z):
        real = real_u8.float() / 127.5 - 1
        fake = self.g(z)
        ones = torch.ones(real.size(0))
        err_d = self.bce(self.d(real) - self.d(fake.detach()), ones)
        err_g = self.bce(self.d(fake) - self.d(real), ones)
        return err_g, err_d


def example():
    g = torch.Generator().manual_seed(46)
    real = torch.randint(0, 256, (5, 1, 12, 12), generator=g, dtype=torch.uint8)
    return real, torch.randn(5, 10, generator=g)
