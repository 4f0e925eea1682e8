"""DCGAN on small icons, both losses of one step.

MISTAKE (silent): the generator loss labels the generated icons as fake (zeros), so the generator learns to be
found out; its target has to be real (ones).
"""
import torch
import torch.nn as nn


class Generator(nn.Module):
    def __init__(self, nz=8, ch=12):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, 2 * ch, 3), nn.BatchNorm2d(2 * ch), nn.ReLU(),
            nn.ConvTranspose2d(2 * ch, ch, 4, stride=2, padding=1), nn.BatchNorm2d(ch), nn.ReLU(),
            nn.ConvTranspose2d(ch, 3, 4, stride=2, padding=1), nn.Tanh(),
        )

    def forward(self, z):
        return self.main(z[:, :, None, None])


class Discriminator(nn.Module):
    def __init__(self, ch=10):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(3, ch, 4, stride=2, padding=1), nn.LeakyReLU(0.2),
            nn.Conv2d(ch, 2 * ch, 4, stride=2, padding=1), nn.LeakyReLU(0.2),
            nn.Conv2d(2 * ch, 1, 3),
        )

    def forward(self, x):
        return self.main(x).view(-1)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.netG, self.netD = Generator(), Discriminator()
        self.criterion = nn.BCEWithLogitsLoss()

    def forward(self, real, noise):
        fake = self.netG(noise)
        real_score, fake_score = self.netD(real), self.netD(fake.detach())
        d_loss = self.criterion(real_score, torch.ones_like(real_score))
        d_loss = d_loss + self.criterion(fake_score, torch.zeros_like(fake_score))
        score = self.netD(fake)
        g_loss = self.criterion(score, torch.zeros_like(score))  # fault: no-rule
        return d_loss, g_loss


class Fixed(Step):
    def forward(self, real, noise):
        fake = self.netG(noise)
        real_score, fake_score = self.netD(real), self.netD(fake.detach())
        d_loss = self.criterion(real_score, torch.ones_like(real_score))
        d_loss = d_loss + self.criterion(fake_score, torch.zeros_like(fake_score))
        score = self.netD(fake)
        g_loss = self.criterion(score, torch.ones_like(score))
        return d_loss, g_loss


def example():
    g = torch.Generator().manual_seed(1)
    return torch.rand(5, 3, 12, 12, generator=g) * 2 - 1, torch.randn(5, 8, generator=g)
