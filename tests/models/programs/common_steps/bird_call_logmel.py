"""BirdCLEF-like tagging from power spectrograms.

MISTAKE (silent): log-mel floor written as clamp(max=1e-5) instead of clamp(min=1e-5).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class LogMel(nn.Module):
    def __init__(self, n_freq=33, n_mels=16):
        super().__init__()
        centers = torch.linspace(1, n_freq - 2, n_mels)
        bins = torch.arange(n_freq).float()
        fb = (1 - (bins[:, None] - centers[None]).abs() / 3.0).clamp(min=0)
        self.register_buffer("fb", fb)

    def forward(self, power):
        mel = torch.matmul(power.transpose(1, 2), self.fb)     # (B, T, n_mels)
        return torch.log(torch.clamp(mel, max=1e-5))  # fault: clip-leaves-nothing


class Tagger(nn.Module):
    def __init__(self, n_mels=16, species=9):
        super().__init__()
        self.conv = nn.Conv1d(n_mels, 24, 3, padding=1)
        self.att = nn.Linear(24, species)
        self.cla = nn.Linear(24, species)

    def forward(self, logmel):
        h = F.relu(self.conv(logmel.transpose(1, 2))).transpose(1, 2)
        w = torch.softmax(self.att(h), dim=1)
        return (w * self.cla(h)).sum(dim=1)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.frontend = LogMel()
        self.tagger = Tagger()

    def forward(self, power_spec, species):
        logits = self.tagger(self.frontend(power_spec))
        return F.binary_cross_entropy_with_logits(logits, species)


def example():
    g = torch.Generator().manual_seed(48)
    return torch.rand(4, 33, 20, generator=g) * 5 + 1e-4, (torch.rand(4, 9, generator=g) < 0.2).float()
