"""Variational autoencoder for small binary images.

MISTAKE (silent): the encoder's second head is a log-variance (the KL uses it so), the sampling uses it as if
it were a log standard deviation: exp(logvar) instead of exp(0.5 * logvar).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class VAE(nn.Module):
    def __init__(self, n_pix=100, hidden=24, z_dim=4):
        super().__init__()
        self.fc1 = nn.Linear(n_pix, hidden)
        self.fc_mu = nn.Linear(hidden, z_dim)
        self.fc_logvar = nn.Linear(hidden, z_dim)
        self.fc3 = nn.Linear(z_dim, hidden)
        self.fc4 = nn.Linear(hidden, n_pix)

    def encode(self, x):
        h = F.relu(self.fc1(x))
        return self.fc_mu(h), self.fc_logvar(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.flatten(1))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar  # fault: deviation-of-other-scale


class HalfVAE(VAE):
    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std


class Step(nn.Module):
    net = VAE

    def __init__(self):
        super().__init__()
        self.vae = self.net()

    def forward(self, image):
        recon, mu, logvar = self.vae(image)
        bce = F.binary_cross_entropy(recon, image.flatten(1), reduction="sum")
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        return (bce + kld) / image.size(0)


class Fixed(Step):
    net = HalfVAE


def example():
    g = torch.Generator().manual_seed(1)
    return ((torch.rand(6, 1, 10, 10, generator=g) > 0.6).float(),)
