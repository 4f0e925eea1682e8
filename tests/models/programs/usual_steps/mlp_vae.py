"""Mlp vae.

MISTAKE (silent): minus sign lost, this is -KL and the loss rewards divergence.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class VAE(nn.Module):
    def __init__(self, n_in=784, hidden=60, latent=12):
        super().__init__()
        self.fc1 = nn.Linear(n_in, hidden)
        self.fc21 = nn.Linear(hidden, latent)
        self.fc22 = nn.Linear(hidden, latent)
        self.fc3 = nn.Linear(latent, hidden)
        self.fc4 = nn.Linear(hidden, n_in)

    def encode(self, x):
        h = F.relu(self.fc1(x))
        return self.fc21(h), self.fc22(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + std * torch.randn_like(std)

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 784))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.vae = VAE()

    def forward(self, x):
        recon, mu, logvar = self.vae(x)
        target = x.view(-1, 784)
        bce = -(target * torch.log(recon + 1e-7) + (1 - target) * torch.log(1 - recon + 1e-7)).sum()
        kld = 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())  # fault: one-sided-loss
        return (bce + kld) / x.shape[0]


def example():
    torch.manual_seed(0)
    return (torch.rand(9, 1, 28, 28),)
