"""Time-conditioned flow matching net with sinusoidal features.

The exponent is computed with integer floor division (arange // dim), which is 0 everywhere: all
frequencies are 1 and the embedding has only two distinct channels.
Fix: true division.
"""
import torch
from torch import nn

OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]


class Step(nn.Module):
    dim = 16

    def __init__(self):
        super().__init__()
        self.v = nn.Sequential(nn.Linear(4 + self.dim, 32), nn.Mish(), nn.Linear(32, 4))

    def exponent(self):
        half = torch.arange(self.dim // 2)
        return half // (self.dim // 2)  # wrong: integer division, exponent is 0 for every channel

    def embed(self, t):
        freq = torch.pow(1000.0, -self.exponent().float())
        arg = t.unsqueeze(-1) * freq * 6.2831853
        return torch.cat([arg.sin(), arg.cos()], dim=-1)

    def forward(self, x0, x1, t):
        xt = torch.lerp(x0, x1, t.unsqueeze(-1))
        u = self.v(torch.cat([xt, self.embed(t)], dim=-1))  # fault: frequencies-all-alike
        return ((u - (x1 - x0)) ** 2).mean()


class Fixed(Step):
    def exponent(self):
        half = torch.arange(self.dim // 2)
        return half / (self.dim // 2)


def example():
    torch.manual_seed(34)
    return torch.randn(6, 4), torch.randn(6, 4), torch.rand(6)
