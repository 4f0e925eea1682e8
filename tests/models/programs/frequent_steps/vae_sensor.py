"""VAE on binary sensor states; the encoder outputs a softplus scale instead of a log variance.

CORRECT: unusual, and as it is meant.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, d_in, d_z):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(d_in, 40), nn.ELU())
        self.loc = nn.Linear(40, d_z)
        self.raw_scale = nn.Linear(40, d_z)

    def forward(self, x):
        h = self.trunk(x)
        return self.loc(h), F.softplus(self.raw_scale(h)) + 1e-4


def kl_to_standard_normal(loc, scale):
    return (0.5 * (scale.square() + loc.square() - 1.0) - scale.log()).sum(dim=1)


class Step(nn.Module):
    def __init__(self, d_in=30, d_z=5):
        super().__init__()
        self.encoder = Encoder(d_in, d_z)
        self.decoder = nn.Sequential(nn.Linear(d_z, 40), nn.ELU(), nn.Linear(40, d_in))

    def forward(self, states):
        x = states.float()
        loc, scale = self.encoder(2.0 * x - 1.0)
        z = loc + scale * torch.randn_like(scale)
        logits = self.decoder(z)
        log_px = (x * logits - F.softplus(logits)).sum(dim=1)
        elbo = log_px - kl_to_standard_normal(loc, scale)
        return -elbo.mean()


def example():
    g = torch.Generator().manual_seed(49)
    return (torch.rand(8, 30, generator=g) < 0.3,)
