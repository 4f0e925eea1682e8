"""DCGAN discriminator step.

The discriminator ends with a sigmoid and the loss is the *with logits* variant: two
sigmoids, the score is confined to (0.5, 0.73) and D never becomes confident.
Fix: drop the Sigmoid layer (or use binary_cross_entropy).
"""
import torch
from torch import nn


class Disc(nn.Module):
    def __init__(self, last):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, 8, 4, 2, 1), nn.LeakyReLU(0.2),
            nn.Conv2d(8, 16, 4, 2, 1), nn.LeakyReLU(0.2),
            nn.Conv2d(16, 1, 4), last)

    def forward(self, x):
        return self.main(x).flatten()


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.netD = Disc(nn.Sigmoid())
        self.criterion = nn.BCEWithLogitsLoss()

    def forward(self, real, fake):
        out_real = self.netD(real)
        err_real = self.criterion(out_real, torch.full_like(out_real, 0.9))  # fault: probabilities-into-logit-loss
        out_fake = self.netD(fake.detach())
        err_fake = self.criterion(out_fake, torch.zeros_like(out_fake))
        return err_real + err_fake


class Fixed(Step):
    def __init__(self):
        super().__init__()
        self.netD = Disc(nn.Identity())


def example():
    torch.manual_seed(4)
    return torch.rand(3, 1, 16, 16), torch.rand(3, 1, 16, 16)
