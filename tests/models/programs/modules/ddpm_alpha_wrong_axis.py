"""DDPM noise prediction step on 8x8 images, batch 8.

The per-sample coefficient has shape (B,) and is multiplied with (B, C, H, W); as W equals B
it broadcasts over the image columns: every column gets another sample's noise level.
Fix: reshape the coefficient to (B, 1, 1, 1).
"""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    def __init__(self, steps=50):
        super().__init__()
        betas = torch.linspace(1e-4, 0.02, steps)
        self.register_buffer("abar", torch.cumprod(1 - betas, 0))
        self.temb = nn.Embedding(steps, 16)
        self.c1 = nn.Conv2d(3, 16, 3, padding=1)
        self.c2 = nn.Conv2d(16, 3, 3, padding=1)

    def noised(self, x0, t, noise):
        a = self.abar[t]
        return a.sqrt() * x0 + (1 - a).sqrt() * noise  # wrong: (B,) coefficient broadcast over image width

    def forward(self, x0, t, noise):
        xt = self.noised(x0, t, noise)  # fault: silent-broadcast-in-loss
        h = F.silu(self.c1(xt) + self.temb(t)[:, :, None, None])
        return F.mse_loss(self.c2(h), noise)


class Fixed(Step):
    def noised(self, x0, t, noise):
        a = self.abar[t].view(-1, 1, 1, 1)
        return a.sqrt() * x0 + (1 - a).sqrt() * noise


def example():
    torch.manual_seed(11)
    return torch.randn(8, 3, 8, 8), torch.randint(0, 50, (8,)), torch.randn(8, 3, 8, 8)
