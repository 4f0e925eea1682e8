"""Diffusion training step: x_t = sqrt(ab)*x0 + (1-ab)*noise, the root of the noise coefficient is missing.

The marginal variance is not one, it shrinks in the middle of the schedule.  Fix: sqrt(1 - ab).
"""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    def __init__(self, T=20):
        super().__init__()
        betas = torch.linspace(1e-4, 0.2, T)
        self.register_buffer("ab", torch.cumprod(1.0 - betas, 0))
        self.temb = nn.Embedding(T, 8)
        self.inp = nn.Conv2d(1, 8, 3, padding=1)
        self.out = nn.Conv2d(8, 1, 3, padding=1)

    def q_sample(self, x0, eps, ab):
        return ab.sqrt() * x0 + (1.0 - ab) * eps

    def forward(self, x0, t, eps):
        ab = self.ab[t].reshape(-1, 1, 1, 1)
        xt = self.q_sample(x0, eps, ab)  # fault: noise-share-without-root
        h = F.silu(self.inp(xt) + self.temb(t)[..., None, None])
        return F.mse_loss(self.out(h), eps)


class Fixed(Step):
    def q_sample(self, x0, eps, ab):
        return ab.sqrt() * x0 + (1.0 - ab).sqrt() * eps


def example():
    torch.manual_seed(41)
    return torch.randn(3, 1, 6, 6), torch.tensor([2, 9, 19]), torch.randn(3, 1, 6, 6)
