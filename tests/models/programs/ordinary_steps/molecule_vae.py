"""Trains a variational autoencoder of molecular fingerprints. The sample uses exp(logvar), the variance, as the standard deviation; it should be exp(0.5 * logvar)."""
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, bits, latent):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(bits, 60), nn.SiLU(), nn.Linear(60, 2 * latent))

    def forward(self, fp):
        return self.net(fp).chunk(2, dim=-1)


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, bits=120, latent=9):
        super().__init__()
        self.encoder = Encoder(bits, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 60), nn.SiLU(), nn.Linear(60, bits))
        self.recon_loss = nn.BCEWithLogitsLoss(reduction="none")

    def reparameterize(self, mean, logvar, noise):
        std = torch.exp(logvar)  # fault: deviation-of-other-scale
        return mean + std * noise

    def forward(self, fingerprint, noise):
        mean, logvar = self.encoder(fingerprint)
        z = self.reparameterize(mean, logvar, noise)  # fault: deviation-of-other-scale
        recon = self.recon_loss(self.decoder(z), fingerprint).sum(1)
        kl = -0.5 * (1 + logvar - mean ** 2 - logvar.exp()).sum(1)
        return (recon + kl).mean()


def example():
    """A tuple of tensors, with realistic dtypes."""
    return ((torch.rand(14, 120) < 0.3).float(), torch.randn(14, 9))
