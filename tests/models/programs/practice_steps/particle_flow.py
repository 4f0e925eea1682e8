"""RealNVP density model of particle features, conditional on the beam energy.

CORRECT: the flow goes from data to noise, so the log-determinant (sum of the log scales) is added to the log
density of the noise and the whole is negated; the halves are swapped with flip.
"""
import math
import torch
import torch.nn as nn


class Coupling(nn.Module):
    def __init__(self, dim, cond, hidden=20):
        super().__init__()
        self.half = dim // 2
        self.net = nn.Sequential(
            nn.Linear(self.half + cond, hidden), nn.LeakyReLU(), nn.Linear(hidden, 2 * (dim - self.half))
        )

    def forward(self, x, c):
        a, b = x[:, : self.half], x[:, self.half :]
        s, t = self.net(torch.cat([a, c], dim=1)).chunk(2, dim=1)
        s = torch.tanh(s)
        return torch.cat([a, (b + t) * s.exp()], dim=1), s.sum(dim=1)


class Flow(nn.Module):
    def __init__(self, dim=6, cond=1, n_layers=4):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(dim, cond) for _ in range(n_layers))
        self.dim = dim

    def log_prob(self, x, c):
        logdet = torch.zeros_like(x[:, 0])
        for layer in self.layers:
            x, ld = layer(x, c)
            logdet = logdet + ld
            x = x.flip(1)
        base = -0.5 * (x ** 2).sum(dim=1) - 0.5 * self.dim * math.log(2 * math.pi)
        return base + logdet


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.flow = Flow()

    def forward(self, features, energy):
        c = torch.log(energy).unsqueeze(1)
        return -self.flow.log_prob(features, c).mean()


def example():
    g = torch.Generator().manual_seed(1)
    return torch.randn(7, 6, generator=g), torch.rand(7, generator=g) * 10 + 1


OPEN = [{0: "batch"}, {0: "batch"}]
