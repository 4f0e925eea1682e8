"""Vae reparam.

MISTAKE (silent): reparameterisation with uniform rand_like instead of randn_like.
"""
import torch
from torch import nn
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self, d=100, h=40, z=6):
        super().__init__()
        self.fc1 = nn.Linear(d, h)
        self.fc21 = nn.Linear(h, z)
        self.fc22 = nn.Linear(h, z)
        self.fc3 = nn.Linear(z, h)
        self.fc4 = nn.Linear(h, d)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.rand_like(std)  # fault: uniform-for-normal-noise
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.flatten(1))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar  # fault: uniform-for-normal-noise


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.vae = VAE()

    def forward(self, digits):
        recon, mu, logvar = self.vae(digits)
        bce = F.binary_cross_entropy(recon, digits.flatten(1), reduction="sum")
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        return (bce + kld) / digits.size(0)


def example():
    torch.manual_seed(29)
    return (torch.rand(5, 1, 10, 10),)
