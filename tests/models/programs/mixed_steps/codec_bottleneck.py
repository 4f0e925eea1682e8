"""Tiny neural audio codec with a scalar-quantised bottleneck.

MISTAKE (silent): plain round() between encoder and decoder has zero gradient; the encoder never learns. Needs a straight-through term.
"""
import torch
from torch import nn


class Step(nn.Module):
    levels = 7

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv1d(1, 8, 4, 4), nn.ELU(), nn.Conv1d(8, 4, 4, 4), nn.Tanh())
        self.decoder = nn.Sequential(nn.ConvTranspose1d(4, 8, 4, 4), nn.ELU(), nn.ConvTranspose1d(8, 1, 4, 4))

    def quantize(self, z):
        half = (self.levels - 1) / 2
        return torch.round(z * half) / half  # fault: loss-detached-from-parameters

    def forward(self, wave):
        z = self.encoder(wave.unsqueeze(1))
        q = self.quantize(z)  # fault: loss-detached-from-parameters
        out = self.decoder(q).squeeze(1)
        l1 = (out - wave).abs().mean()
        energy = (out.square().mean(1) - wave.square().mean(1)).abs().mean()
        return l1 + 0.1 * energy


class Fixed(Step):
    def quantize(self, z):
        hard = super().quantize(z)
        return z + (hard - z).detach()


def example():
    torch.manual_seed(17)
    return (torch.randn(4, 64) * 0.3,)
