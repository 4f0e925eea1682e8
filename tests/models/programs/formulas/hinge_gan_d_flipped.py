"""Hinge GAN discriminator loss with the signs of the two margins exchanged.

relu(1 + D(real)) + relu(1 - D(fake)) pushes real scores down and fake scores up, while the generator term
-D(fake) also pushes them up.  Fix: relu(1 - real) + relu(1 + fake).
"""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 10))
        self.D = nn.Sequential(nn.Linear(10, 16), nn.LeakyReLU(.2), nn.Linear(16, 1))

    def d_loss(self, real, fake):
        return F.relu(1.0 + real).mean() + F.relu(1.0 - fake).mean()

    def forward(self, x, z):
        fake = self.G(z)
        ld = self.d_loss(self.D(x), self.D(fake.detach()))  # fault: margins-exchanged
        lg = -self.D(fake).mean()
        return ld, lg


class Fixed(Step):
    def d_loss(self, real, fake):
        return F.relu(1.0 - real).mean() + F.relu(1.0 + fake).mean()


def example():
    torch.manual_seed(20)
    return torch.randn(6, 10), torch.randn(6, 4)
