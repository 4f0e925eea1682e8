"""Trains the critic of an anime face GAN with the hinge loss. The fake term has the sign of the real term, so both kinds of image are pushed to high scores; it should be relu(1 + fake)."""
import torch
import torch.nn.functional as F
from torch import nn


class Critic(nn.Module):
    def __init__(self, ch=10):
        super().__init__()
        self.c1 = nn.Conv2d(3, ch, 4, 2, 1)
        self.c2 = nn.Conv2d(ch, 2 * ch, 4, 2, 1)
        self.out = nn.Linear(2 * ch, 1)

    def forward(self, img):
        h = F.leaky_relu(self.c1(img), 0.2)
        h = F.leaky_relu(self.c2(h), 0.2)
        return self.out(h.sum(dim=[2, 3])).view(-1)


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.generator = nn.Sequential(
            nn.Linear(9, 20 * 4 * 4), nn.ReLU(), nn.Unflatten(1, (20, 4, 4)),
            nn.ConvTranspose2d(20, 10, 4, 2, 1), nn.ReLU(),
            nn.ConvTranspose2d(10, 3, 4, 2, 1), nn.Tanh(),
        )
        self.critic = Critic()

    def forward(self, real_faces, z):
        fake_faces = self.generator(z).detach()
        real_out = self.critic(real_faces)
        fake_out = self.critic(fake_faces)
        loss_real = F.relu(1.0 - real_out).mean()
        loss_fake = F.relu(1.0 - fake_out).mean()  # fault: labels-all-alike
        return loss_real + loss_fake


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.rand(6, 3, 16, 16) * 2 - 1, torch.randn(8, 9))
