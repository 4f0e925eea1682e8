"""Denoising diffusion on greyscale textures, noise prediction with class dropout.

CORRECT: the schedule values are gathered per image and reshaped to [B, 1, 1, 1]; square roots of the cumulative
product and of one minus it; the images 0..255 go to -1..1; the target is the noise, not the image.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


def time_embedding(t, dim):
    freq = torch.exp(-math.log(10000.0) * torch.arange(dim // 2) / (dim // 2))
    arg = t.float().unsqueeze(1) * freq.unsqueeze(0)
    return torch.cat([torch.sin(arg), torch.cos(arg)], dim=1)


class Denoiser(nn.Module):
    def __init__(self, ch=12, emb=16, n_class=4):
        super().__init__()
        self.emb = emb
        self.cls = nn.Embedding(n_class + 1, emb)
        self.time = nn.Sequential(nn.Linear(emb, ch), nn.SiLU(), nn.Linear(ch, ch))
        self.inp = nn.Conv2d(1, ch, 3, padding=1)
        self.mid = nn.Sequential(nn.GroupNorm(3, ch), nn.SiLU(), nn.Conv2d(ch, ch, 3, padding=1))
        self.out = nn.Conv2d(ch, 1, 3, padding=1)

    def forward(self, x, t, y):
        e = self.time(time_embedding(t, self.emb) + self.cls(y))
        h = self.inp(x) + e[:, :, None, None]
        return self.out(h + self.mid(h))


class Step(nn.Module):
    def __init__(self, steps=50, n_class=4):
        super().__init__()
        betas = torch.linspace(1e-4, 0.05, steps)
        self.register_buffer("alpha_bar", torch.cumprod(1.0 - betas, dim=0))
        self.n_class = n_class
        self.net = Denoiser(n_class=n_class)

    def forward(self, image, label, t, noise, drop):
        x0 = image.float() / 127.5 - 1.0
        ab = self.alpha_bar[t].view(-1, 1, 1, 1)
        xt = ab.sqrt() * x0 + (1 - ab).sqrt() * noise
        y = torch.where(drop, torch.full_like(label, self.n_class), label)
        return F.mse_loss(self.net(xt, t, y), noise)


def example():
    g = torch.Generator().manual_seed(1)
    return (
        torch.randint(0, 256, (5, 1, 12, 12), generator=g).to(torch.uint8),
        torch.randint(0, 4, (5,), generator=g),
        torch.randint(0, 50, (5,), generator=g),
        torch.randn(5, 1, 12, 12, generator=g),
        torch.rand(5, generator=g) < 0.2,
    )
