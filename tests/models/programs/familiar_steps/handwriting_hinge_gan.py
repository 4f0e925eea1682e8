"""Trains the discriminator of a handwriting GAN with the hinge loss. The fake term is relu(1 - D(fake)) and so pushes fakes up just as the real ones; it should be relu(1 + D(fake))."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.gen = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 28 * 14), nn.Tanh())
        self.disc = nn.Sequential(nn.Linear(28 * 14, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1))

    def forward(self, strokes, z):
        with torch.no_grad():
            fake = self.gen(z)
        d_real = self.disc(strokes.flatten(1))
        d_fake = self.disc(fake)
        loss_real = torch.relu(1.0 - d_real).mean()
        loss_fake = torch.relu(1.0 - d_fake).mean()  # fault: labels-all-alike
        return loss_real + loss_fake


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.rand(16, 1, 28, 14) * 2 - 1, torch.randn(16, 10))
