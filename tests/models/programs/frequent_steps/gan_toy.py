"""GAN on 2-d toy data: one combined step, first output is the generator loss.

MISTAKE (silent): the generator is trained towards the fake label, it must use real_label.
"""
import torch
import torch.nn as nn

LATENT = 8


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(LATENT, 32), nn.LeakyReLU(0.2), nn.Linear(32, 2))

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))

    def forward(self, x):
        return self.main(x)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.netG, self.netD = Generator(), Discriminator()
        self.criterion = nn.BCEWithLogitsLoss()

    def forward(self, real, noise_d, noise_g):
        b = real.size(0)
        real_label = torch.ones(b, 1)
        fake_label = torch.zeros(b, 1)
        fake = self.netG(noise_d).detach()
        errD_real = self.criterion(self.netD(real), real_label)
        errD_fake = self.criterion(self.netD(fake), fake_label)
        errD = errD_real + errD_fake
        generated = self.netG(noise_g)
        errG = self.criterion(self.netD(generated), fake_label)  # fault: swapped-loss-sides
        return errG, errD


def example():
    g = torch.Generator().manual_seed(21)
    return (torch.randn(10, 2, generator=g) * 0.5 + 2, torch.randn(10, LATENT, generator=g),
            torch.randn(10, LATENT, generator=g))
