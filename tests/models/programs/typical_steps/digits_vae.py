"""Variational autoencoder on flattened 8x8 digits.

MISTAKE (silent): the sample uses exp(logvar) as standard deviation; it should be exp(0.5 * logvar).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class VAE(nn.Module):
    def __init__(self, n_pix=64, hidden=32, latent=4):
        super().__init__()
        self.enc = nn.Linear(n_pix, hidden)
        self.fc_mu = nn.Linear(hidden, latent)
        self.fc_logvar = nn.Linear(hidden, latent)
        self.dec = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, n_pix))

    def encode(self, x):
        h = F.relu(self.enc(x))
        return self.fc_mu(h), self.fc_logvar(h)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.vae = VAE()

    def forward(self, x):
        mu, logvar = self.vae.encode(x)
        std = torch.exp(logvar)
        z = mu + torch.randn_like(std) * std  # fault: deviation-of-other-scale
        recon = self.vae.dec(z)
        bce = F.binary_cross_entropy_with_logits(recon, x, reduction="sum")
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        return (bce + kld) / x.size(0)


class Fixed(Step):
    def forward(self, x):
        mu, logvar = self.vae.encode(x)
        std = torch.exp(0.5 * logvar)
        z = mu + torch.randn_like(std) * std
        recon = self.vae.dec(z)
        bce = F.binary_cross_entropy_with_logits(recon, x, reduction="sum")
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        return (bce + kld) / x.size(0)


def example():
    g = torch.Generator().manual_seed(1)
    return (torch.rand(7, 64, generator=g),)


OPEN = [{0: "batch"}]
