"""Small waveform codec: strided encoder, scalar quantisation to whole levels, decoder, L1 on the wave and its slope, and a small rate term.

MISTAKE (silent): torch.round has gradient 0 everywhere, so the encoder learns nothing from the reconstruction; a straight-through estimator, z + (round(z) - z).detach(), or noise is needed.
"""
import torch
import torch.nn as nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv1d(1, 16, 8, stride=4, padding=2), nn.ELU(), nn.Conv1d(16, 4, 3, padding=1))
        self.dec = nn.Sequential(nn.Conv1d(4, 16, 3, padding=1), nn.ELU(), nn.ConvTranspose1d(16, 1, 8, stride=4, padding=2))

    def quantise(self, z, dither):
        return torch.round(z * 4) / 4  # fault: loss-detached-from-parameters

    def forward(self, wav, dither):
        z = torch.tanh(self.enc(wav.unsqueeze(1)))
        rec = self.dec(self.quantise(z, dither)).squeeze(1)  # fault: loss-detached-from-parameters
        time = (rec - wav).abs().mean()
        slope = (rec.diff(dim=-1) - wav.diff(dim=-1)).abs().mean()
        rate = torch.log1p((z * 4 + dither).abs()).mean()
        return time + slope + 1e-3 * rate


class Fixed(Step):
    def quantise(self, z, dither):
        return z + dither / 4


def example():
    torch.manual_seed(59)
    return torch.sin(torch.arange(64) * 0.3 * torch.rand(4, 1)), torch.rand(4, 4, 16) - 0.5
