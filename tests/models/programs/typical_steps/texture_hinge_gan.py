"""Hinge GAN on 8x8 textures: both losses of one iteration as a tuple.

CORRECT: the generator loss is minus the critic score; fakes are detached for the discriminator; no sigmoid anywhere.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Generator(nn.Module):
    def __init__(self, nz=10):
        super().__init__()
        self.fc = nn.Linear(nz, 16 * 4)
        self.up1 = nn.ConvTranspose2d(16, 8, 4, stride=2, padding=1)
        self.up2 = nn.ConvTranspose2d(8, 1, 4, stride=2, padding=1)

    def forward(self, z):
        h = F.relu(self.fc(z)).view(-1, 16, 2, 2)
        return torch.tanh(self.up2(F.relu(self.up1(h))))


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 12, 4, stride=2, padding=1)
        self.c2 = nn.Conv2d(12, 16, 4, stride=2, padding=1)
        self.score = nn.Linear(16, 1)

    def forward(self, x):
        h = F.leaky_relu(self.c1(x), 0.2)
        h = F.leaky_relu(self.c2(h), 0.2)
        return self.score(h.sum(dim=(2, 3))).view(-1)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.gen = Generator()
        self.disc = Discriminator()

    def forward(self, real, z):
        fake = self.gen(z)
        d_real = self.disc(real)
        d_fake = self.disc(fake.detach())
        d_loss = F.relu(1.0 - d_real).mean() + F.relu(1.0 + d_fake).mean()
        g_loss = -self.disc(fake).mean()
        return d_loss, g_loss


def example():
    g = torch.Generator().manual_seed(1)
    return (torch.rand(7, 1, 8, 8, generator=g) * 2 - 1, torch.randn(7, 10, generator=g))


OPEN = [{0: "batch"}, {0: "batch"}]
