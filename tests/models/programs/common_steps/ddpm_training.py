"""Ddpm training.

MISTAKE (silent): diffusion forward process without square roots of alpha_bar and 1-alpha_bar.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class EpsNet(nn.Module):
    def __init__(self, ch=16, T=100):
        super().__init__()
        self.time = nn.Embedding(T, ch)
        self.inp = nn.Conv2d(1, ch, 3, padding=1)
        self.mid = nn.Conv2d(ch, ch, 3, padding=1)
        self.out = nn.Conv2d(ch, 1, 3, padding=1)

    def forward(self, x, t):
        h = self.inp(x) + self.time(t)[:, :, None, None]
        h = h + self.mid(F.silu(h))
        return self.out(F.silu(h))


class Step(nn.Module):
    def __init__(self, T=100):
        super().__init__()
        self.model = EpsNet(T=T)
        betas = torch.linspace(1e-4, 0.02, T)
        self.register_buffer("alphas_cumprod", torch.cumprod(1.0 - betas, dim=0))

    def q_sample(self, x0, t, noise):
        a_bar = self.alphas_cumprod[t].view(-1, 1, 1, 1)
        return a_bar * x0 + (1 - a_bar) * noise  # fault: noise-share-without-root

    def forward(self, x0, t):
        noise = torch.randn_like(x0)
        x_t = self.q_sample(x0, t, noise)  # fault: noise-share-without-root
        return F.mse_loss(self.model(x_t, t), noise)


def example():
    g = torch.Generator().manual_seed(33)
    return torch.rand(5, 1, 12, 12, generator=g) * 2 - 1, torch.randint(0, 100, (5,), generator=g)
