"""Denoise toy.

MISTAKE (silent): integer division, the time fed to the network is always 0.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    """2-D point diffusion with a cosine schedule, epsilon prediction."""

    def __init__(self, n_steps=1000, dim=64):
        super().__init__()
        self.n_steps = n_steps
        s = torch.arange(n_steps) / n_steps
        self.register_buffer("alpha_bar", torch.cos((s + 0.008) / 1.008 * math.pi / 2) ** 2)
        self.register_buffer("freqs", torch.exp(torch.linspace(0, 4, 8)))
        self.net = nn.Sequential(nn.Linear(2 + 16, dim), nn.SiLU(), nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, 2))

    def forward(self, x0, t, noise):
        ab = self.alpha_bar[t].unsqueeze(-1)
        xt = ab.sqrt() * x0 + (1 - ab).sqrt() * noise
        tau = t // self.n_steps  # fault: quotient-always-zero
        ang = tau.float().unsqueeze(-1) * self.freqs
        temb = torch.cat([ang.sin(), ang.cos()], dim=-1)
        eps = self.net(torch.cat([xt, temb], dim=-1))
        return F.mse_loss(eps, noise)


def example():
    torch.manual_seed(0)
    return torch.randn(256, 2), torch.randint(0, 1000, (256,)), torch.randn(256, 2)
