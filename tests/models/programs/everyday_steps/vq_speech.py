"""Vq speech.

CORRECT: straight-through estimator around the argmin.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class VQ(nn.Module):
    def __init__(self, n=64, dim=16):
        super().__init__()
        self.codebook = nn.Parameter(torch.randn(n, dim) * 0.3)

    def forward(self, z):
        d = z.pow(2).sum(-1, keepdim=True) - 2 * z @ self.codebook.t() + self.codebook.pow(2).sum(-1)
        idx = d.argmin(dim=-1)
        return self.codebook[idx], idx


class Step(nn.Module):
    def __init__(self, n_mels=40, dim=16, beta=0.25):
        super().__init__()
        self.enc = nn.Conv1d(n_mels, dim, 4, stride=2, padding=1)
        self.dec = nn.ConvTranspose1d(dim, n_mels, 4, stride=2, padding=1)
        self.vq = VQ(dim=dim)
        self.beta = beta

    def forward(self, mel):
        z = self.enc(mel).transpose(1, 2)
        q, idx = self.vq(z)
        codebook = (q - z.detach()).pow(2).mean()
        commit = (z - q.detach()).pow(2).mean()
        st = z + (q - z).detach()
        recon = self.dec(st.transpose(1, 2))
        return (recon - mel).abs().mean() + codebook + self.beta * commit


def example():
    torch.manual_seed(0)
    return (torch.randn(8, 40, 64),)
