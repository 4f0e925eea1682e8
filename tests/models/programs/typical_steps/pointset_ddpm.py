"""DDPM noise prediction on two-dimensional point data.

MISTAKE (silent): the forward process mixes with alpha_bar and 1 - alpha_bar; both need a square root.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Denoiser(nn.Module):
    def __init__(self, dim=2, hidden=32, steps=50):
        super().__init__()
        self.time = nn.Embedding(steps, hidden)
        self.inp = nn.Linear(dim, hidden)
        self.mid = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, dim)

    def forward(self, x, t):
        h = F.silu(self.inp(x) + self.time(t))
        return self.out(F.silu(self.mid(h)))


class Step(nn.Module):
    def __init__(self, steps=50):
        super().__init__()
        self.model = Denoiser(steps=steps)
        betas = torch.linspace(1e-4, 0.05, steps)
        self.register_buffer("alpha_bar", torch.cumprod(1.0 - betas, dim=0))

    def forward(self, x0, t):
        noise = torch.randn_like(x0)
        ab = self.alpha_bar[t].unsqueeze(-1)
        x_t = ab * x0 + (1 - ab) * noise  # fault: noise-share-without-root
        return F.mse_loss(self.model(x_t, t), noise)


class Fixed(Step):
    def forward(self, x0, t):
        noise = torch.randn_like(x0)
        ab = self.alpha_bar[t].unsqueeze(-1)
        x_t = ab.sqrt() * x0 + (1 - ab).sqrt() * noise
        return F.mse_loss(self.model(x_t, t), noise)


def example():
    g = torch.Generator().manual_seed(1)
    return (torch.randn(7, 2, generator=g), torch.randint(0, 50, (7,), generator=g))


OPEN = [{0: "batch"}, {0: "batch"}]
