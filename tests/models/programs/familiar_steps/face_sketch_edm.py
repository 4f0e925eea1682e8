"""Trains a denoiser of face sketches with the EDM preconditioning and loss weight."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, sigma_data=0.5):
        super().__init__()
        self.sd = sigma_data
        self.cond = nn.Linear(1, 12)
        self.a = nn.Conv2d(1, 12, 3, padding=1)
        self.b = nn.Conv2d(12, 1, 3, padding=1)

    def raw(self, x, c_noise):
        return self.b(F.silu(self.a(x) + self.cond(c_noise)[:, :, None, None]))

    def denoise(self, x, sigma):
        total = sigma ** 2 + self.sd ** 2
        c_skip = self.sd ** 2 / total
        c_out = sigma * self.sd / total.sqrt()
        c_in = total.rsqrt()
        c_noise = sigma.log().flatten(1) / 4
        return c_skip * x + c_out * self.raw(c_in * x, c_noise)

    def forward(self, sketch, rnd, noise):
        sigma = (rnd * 1.2 - 1.2).exp().reshape(-1, 1, 1, 1)
        weight = (sigma ** 2 + self.sd ** 2) / (sigma * self.sd) ** 2
        denoised = self.denoise(sketch + sigma * noise, sigma)
        return (weight * (denoised - sketch) ** 2).mean()


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(7, 1, 15, 17) * 0.5, torch.randn(7), torch.randn(7, 1, 15, 17))
