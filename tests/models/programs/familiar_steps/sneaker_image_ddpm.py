"""Trains the noise predictor of a DDPM on sneaker images. The noise is scaled by (1 - alpha_bar); it should be by its square root."""
import torch
import torch.nn.functional as F
from torch import nn


class TinyUNet(nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.t_emb = nn.Embedding(steps, 14)
        self.inp = nn.Conv2d(1, 14, 3, padding=1)
        self.mid = nn.Conv2d(14, 14, 3, padding=1)
        self.out = nn.Conv2d(14, 1, 3, padding=1)

    def forward(self, x, t):
        h = F.silu(self.inp(x) + self.t_emb(t)[:, :, None, None])
        h = h + F.silu(self.mid(h))
        return self.out(h)


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, steps=100):
        super().__init__()
        self.eps_model = TinyUNet(steps)
        betas = torch.linspace(1e-4, 0.05, steps)
        self.register_buffer("alpha_bar", torch.cumprod(1.0 - betas, dim=0))

    def q_sample(self, x0, t, noise):
        ab = self.alpha_bar[t].view(-1, 1, 1, 1)
        return ab.sqrt() * x0 + (1 - ab) * noise  # fault: noise-share-without-root

    def forward(self, x0, t, noise):
        x_t = self.q_sample(x0, t, noise)  # fault: noise-share-without-root
        return F.mse_loss(self.eps_model(x_t, t), noise)


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.rand(6, 1, 16, 14) * 2 - 1, torch.randint(0, 100, (6,)), torch.randn(6, 1, 16, 14))
