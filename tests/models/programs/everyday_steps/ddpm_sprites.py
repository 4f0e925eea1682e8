"""Ddpm sprites.

MISTAKE (silent): noise coefficient must be sqrt(1 - abar).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Denoiser(nn.Module):
    def __init__(self, ch=24, n_steps=200):
        super().__init__()
        self.t_emb = nn.Embedding(n_steps, ch)
        self.inp = nn.Conv2d(3, ch, 3, padding=1)
        self.mid = nn.Conv2d(ch, ch, 3, padding=1)
        self.out = nn.Conv2d(ch, 3, 3, padding=1)

    def forward(self, x, t):
        h = F.silu(self.inp(x) + self.t_emb(t)[:, :, None, None])
        h = h + F.silu(self.mid(h))
        return self.out(h)


class Step(nn.Module):
    def __init__(self, n_steps=200):
        super().__init__()
        betas = torch.linspace(1e-4, 0.04, n_steps)
        self.register_buffer("abar", torch.cumprod(1.0 - betas, dim=0))
        self.eps_net = Denoiser(n_steps=n_steps)

    def forward(self, x0, t):
        noise = torch.randn_like(x0)
        a = self.abar[t].view(-1, 1, 1, 1)
        xt = a.sqrt() * x0 + (1 - a) * noise  # fault: noise-share-without-root
        eps = self.eps_net(xt, t)
        return F.mse_loss(eps, noise)


def example():
    torch.manual_seed(0)
    return torch.rand(8, 3, 24, 24) * 2 - 1, torch.randint(0, 200, (8,))
