"""Trains a VAE of doodles with a Bernoulli decoder and free bits per latent dimension."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 81, 2 * 7))
        self.decoder = nn.Sequential(nn.Linear(7, 60), nn.ReLU(), nn.Linear(60, 18 * 18))
        self.free_nats = 0.1

    def forward(self, doodle, eps):
        mean, log_std = torch.split(self.encoder(doodle), 7, dim=1)
        z = mean + log_std.exp() * eps
        pixels = self.decoder(z).view_as(doodle)
        rec = F.softplus(pixels) - doodle * pixels
        rec = rec.sum(dim=(1, 2, 3)).mean()
        kl = 0.5 * (mean ** 2 + torch.exp(2 * log_std) - 1) - log_std
        kl = torch.clamp(kl.mean(dim=0), min=self.free_nats).sum()
        return rec + kl


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return ((torch.rand(9, 1, 18, 18) > 0.7).float(), torch.randn(9, 7))
