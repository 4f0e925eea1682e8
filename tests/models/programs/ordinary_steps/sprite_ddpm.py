"""Trains a noise predictor on game sprites. The noise is scaled by 1 - alpha_bar while the image is scaled by sqrt(alpha_bar); the noise scale should be the square root too."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, T=100):
        super().__init__()
        betas = torch.linspace(1e-4, 0.05, T)
        self.register_buffer("alphas_cumprod", torch.cumprod(1 - betas, dim=0))
        self.time = nn.Embedding(T, 16)
        self.inp = nn.Conv2d(3, 16, 3, padding=1)
        self.mid = nn.Conv2d(16, 16, 3, padding=1)
        self.out = nn.Conv2d(16, 3, 3, padding=1)

    def eps_model(self, x, t):
        h = F.silu(self.inp(x) + self.time(t)[:, :, None, None])
        return self.out(h + F.silu(self.mid(h)))

    def forward(self, x0, t, noise):
        a_bar = self.alphas_cumprod[t].view(-1, 1, 1, 1)
        x_t = torch.sqrt(a_bar) * x0 + (1.0 - a_bar) * noise  # fault: noise-share-without-root
        return F.mse_loss(self.eps_model(x_t, t), noise)


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.rand(6, 3, 10, 12) * 2 - 1, torch.randint(0, 100, (6,)), torch.randn(6, 3, 10, 12))
