"""Ddpm step.

MISTAKE (silent): noise coefficient must be sqrt(1 - alpha_bar), variance is wrong.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class TinyUNet(nn.Module):
    def __init__(self, ch=3, width=16, n_steps=100):
        super().__init__()
        self.temb = nn.Embedding(n_steps, width)
        self.down = nn.Conv2d(ch, width, 3, padding=1)
        self.mid = nn.Conv2d(width, width, 3, padding=1)
        self.up = nn.Conv2d(width, ch, 3, padding=1)

    def forward(self, x, t):
        h = F.silu(self.down(x)) + self.temb(t)[:, :, None, None]
        h = h + F.silu(self.mid(h))
        return self.up(h)


class Step(nn.Module):
    def __init__(self, n_steps=100):
        super().__init__()
        self.unet = TinyUNet(n_steps=n_steps)
        betas = torch.linspace(1e-4, 0.02, n_steps)
        self.register_buffer("alpha_bar", torch.cumprod(1.0 - betas, dim=0))

    def q_sample(self, x0, t, noise):
        a = self.alpha_bar[t].view(-1, 1, 1, 1)
        return a.sqrt() * x0 + (1.0 - a) * noise  # fault: noise-share-without-root

    def forward(self, x0, t, noise):
        xt = self.q_sample(x0, t, noise)  # fault: noise-share-without-root
        return F.mse_loss(self.unet(xt, t), noise)


def example():
    torch.manual_seed(0)
    return torch.rand(6, 3, 20, 24) * 2 - 1, torch.randint(0, 100, (6,)), torch.randn(6, 3, 20, 24)
