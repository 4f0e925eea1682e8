"""Vae mnist.

MISTAKE (silent): logvar is a log-variance, std must be exp(0.5 * logvar).
"""
import torch
from torch import nn
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self, latent=8):
        super().__init__()
        self.fc1 = nn.Linear(196, 64)
        self.fc21 = nn.Linear(64, latent)
        self.fc22 = nn.Linear(64, latent)
        self.fc3 = nn.Linear(latent, 64)
        self.fc4 = nn.Linear(64, 196)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(logvar)  # fault: deviation-of-other-scale
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 196))
        z = self.reparameterize(mu, logvar)  # fault: deviation-of-other-scale
        return self.decode(z), mu, logvar


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.vae = VAE()

    def forward(self, data):
        recon, mu, logvar = self.vae(data)
        bce = F.binary_cross_entropy(recon, data.view(-1, 196), reduction="sum")
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        return (bce + kld) / data.size(0)


def example():
    g = torch.Generator().manual_seed(4)
    return (torch.rand(5, 1, 14, 14, generator=g),)
