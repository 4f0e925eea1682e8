"""Trains a diffusion model of mel spectrograms. The per-step alpha is used where its cumulative product belongs, so the input is hardly noised at any step; alpha_bar = cumprod(alphas) should be indexed."""
import torch
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, steps=200, mels=16):
        super().__init__()
        self.steps = steps
        self.register_buffer("betas", torch.linspace(1e-4, 0.02, steps))
        self.t_mlp = nn.Sequential(nn.Linear(1, 24), nn.SiLU(), nn.Linear(24, 24))
        self.pre = nn.Conv1d(mels, 24, 5, padding=2)
        self.post = nn.Conv1d(24, mels, 5, padding=2)

    def denoise(self, x, t):
        temb = self.t_mlp(t.float().unsqueeze(1) / self.steps)
        return self.post(torch.nn.functional.silu(self.pre(x) + temb.unsqueeze(2)))

    def forward(self, mel, t, eps):
        alphas = 1.0 - self.betas
        a = alphas[t].reshape(-1, 1, 1)  # fault: no-rule
        noisy = a.sqrt() * mel + (1 - a).sqrt() * eps
        return (self.denoise(noisy, t) - eps).pow(2).mean()


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(7, 16, 30), torch.randint(0, 200, (7,)), torch.randn(7, 16, 30))
