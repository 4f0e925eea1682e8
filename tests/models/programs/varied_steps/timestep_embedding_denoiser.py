"""Small denoiser conditioned on an integer diffusion step through sin/cos features; predicts the noise.

MISTAKE (silent): the exponent is computed with integer division (i // half), which is 0 for every i, so all frequencies are 1; use i / half.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, dim=10, tdim=16):
        super().__init__()
        self.half = tdim // 2
        self.time_mlp = nn.Sequential(nn.Linear(tdim, 32), nn.SiLU(), nn.Linear(32, 32))
        self.inp = nn.Linear(dim, 32)
        self.out = nn.Linear(32, dim)

    def exponent(self):
        i = torch.arange(self.half)
        return i // self.half  # fault: frequencies-all-alike

    def time_features(self, t):
        freq = 10000.0 ** (-self.exponent())  # fault: frequencies-all-alike
        arg = t.float()[:, None] * freq[None, :]
        return torch.cat([arg.sin(), arg.cos()], dim=-1)

    def forward(self, x0, t, noise):
        a = torch.cos(t.float() / 1000 * 1.5)[:, None]
        xt = a * x0 + (1 - a ** 2).sqrt() * noise
        h = F.silu(self.inp(xt) + self.time_mlp(self.time_features(t)))  # fault: frequencies-all-alike
        return F.mse_loss(self.out(h), noise)


class Fixed(Step):
    def exponent(self):
        i = torch.arange(self.half)
        return i / self.half


def example():
    torch.manual_seed(23)
    return torch.randn(5, 10), torch.randint(0, 1000, (5,)), torch.randn(5, 10)
