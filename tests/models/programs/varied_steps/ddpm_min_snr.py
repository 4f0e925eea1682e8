"""DDPM noise prediction on small images, weighted by the min-SNR rule per timestep.

MISTAKE (silent): the per-sample error keeps its axes (B, 1, 1, 1) while the weight is (B,), so the product is (B, 1, 1, B) and the mean multiplies mean weight by mean error. Without keepdim it is (B,).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, T=100):
        super().__init__()
        beta = torch.linspace(1e-3, 0.05, T)
        abar = torch.cumprod(1 - beta, 0)
        self.register_buffer("sqrt_ab", abar.sqrt())
        self.register_buffer("sqrt_1mab", (1 - abar).sqrt())
        self.register_buffer("snr", abar / (1 - abar))
        self.t_embed = nn.Embedding(T, 8)
        self.inp = nn.Conv2d(3, 8, 3, padding=1)
        self.out = nn.Conv2d(8, 3, 3, padding=1)

    def eps(self, x, t):
        h = self.inp(x) + self.t_embed(t)[:, :, None, None]
        return self.out(F.silu(h))

    def per_sample(self, a, b):
        return F.mse_loss(a, b, reduction="none").mean(dim=(1, 2, 3), keepdim=True)

    def forward(self, x0, t, noise):
        xt = self.sqrt_ab[t].view(-1, 1, 1, 1) * x0 + self.sqrt_1mab[t].view(-1, 1, 1, 1) * noise
        err = self.per_sample(self.eps(xt, t), noise)
        snr = self.snr[t]
        w = torch.minimum(snr, torch.full_like(snr, 5.0)) / snr
        return (w * err).mean()  # fault: silent-broadcast-in-loss


class Fixed(Step):
    def per_sample(self, a, b):
        return F.mse_loss(a, b, reduction="none").mean(dim=(1, 2, 3))


def example():
    g = torch.Generator().manual_seed(7)
    return torch.randn(4, 3, 8, 8, generator=g), torch.tensor([2, 30, 61, 99]), torch.randn(4, 3, 8, 8, generator=g)


OPEN = [{0: "b"}, {0: "b"}, {0: "b"}]
