"""Beta-VAE on 16x16 sprites in [0, 1]: Bernoulli decoder, Gaussian posterior.

MISTAKE (silent): the sample is taken with exp(logvar) as the standard deviation, while the KL term reads the same logvar as a log variance; std is exp(0.5 * logvar).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, z_dim=6, beta=4.0):
        super().__init__()
        self.beta = beta
        self.enc = nn.Linear(256, 40)
        self.to_mu = nn.Linear(40, z_dim)
        self.to_logvar = nn.Linear(40, z_dim)
        nn.init.constant_(self.to_logvar.bias, -2.0)
        self.dec1 = nn.Linear(z_dim, 40)
        self.dec2 = nn.Linear(40, 256)

    def reparameterize(self, mu, logvar, noise):
        std = torch.exp(logvar)  # fault: deviation-of-other-scale
        return mu + noise * std  # fault: deviation-of-other-scale

    def forward(self, sprites, noise):
        x = sprites.flatten(1)
        h = F.relu(self.enc(x))
        mu, logvar = self.to_mu(h), self.to_logvar(h)
        z = self.reparameterize(mu, logvar, noise)  # fault: deviation-of-other-scale
        logits = self.dec2(F.relu(self.dec1(z)))
        rec = F.binary_cross_entropy_with_logits(logits, x, reduction="sum") / x.size(0)
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1).mean()
        return rec + self.beta * kld, rec, kld


class Fixed(Step):
    def reparameterize(self, mu, logvar, noise):
        return mu + noise * torch.exp(0.5 * logvar)


def example():
    torch.manual_seed(2)
    return torch.rand(5, 1, 16, 16), torch.randn(5, 6)
