"""VAE over 1-d infrared spectra, Gaussian decoder of unit variance.

MISTAKE (silent): the KL term has the wrong sign, so the posterior is pushed away from the prior.
"""
import torch
from torch import nn


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(a, b), nn.ELU()]
    return nn.Sequential(*layers[:-1])


class Step(nn.Module):
    def __init__(self, bins=48, z=4):
        super().__init__()
        self.enc, self.dec = mlp(bins, 32, 2 * z), mlp(z, 32, bins)

    def divergence(self, mu, logvar):
        return 0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(dim=1)  # fault: one-sided-loss

    def forward(self, x, eps):
        mu, logvar = self.enc(x).chunk(2, dim=1)
        z = mu + eps * torch.exp(0.5 * logvar)
        rec = 0.5 * (self.dec(z) - x).square().sum(dim=1)
        kl = self.divergence(mu, logvar)  # fault: one-sided-loss
        return (rec + kl).mean()


class Fixed(Step):
    def divergence(self, mu, logvar):
        return -super().divergence(mu, logvar)


def example():
    torch.manual_seed(9)
    return torch.rand(5, 48), torch.randn(5, 4)
