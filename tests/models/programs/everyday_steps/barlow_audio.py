"""Barlow audio.

CORRECT: Barlow Twins standardises every feature over the batch.
"""
import torch
import torch.nn as nn


class Step(nn.Module):
    def __init__(self, n_mels=40, dim=64, lam=5e-3):
        super().__init__()
        self.conv = nn.Conv1d(n_mels, 64, 5, stride=2)
        self.proj = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, dim))
        self.lam = lam

    def forward(self, a, b):
        za = self.proj(torch.relu(self.conv(a)).mean(dim=2))
        zb = self.proj(torch.relu(self.conv(b)).mean(dim=2))
        za = (za - za.mean(dim=0)) / (za.std(dim=0) + 1e-6)
        zb = (zb - zb.mean(0)) / (zb.std(0) + 1e-6)
        c = za.T @ zb / za.shape[0]
        diag = torch.diagonal(c)
        on = (diag - 1).pow(2).sum()
        off = c.pow(2).sum() - diag.pow(2).sum()
        return on + self.lam * off


def example():
    torch.manual_seed(0)
    return torch.randn(32, 40, 60), torch.randn(32, 40, 60)
