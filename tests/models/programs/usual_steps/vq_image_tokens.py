"""Vq image tokens.

CORRECT: straight-through estimator, gradient passes by the argmin.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class VectorQuantizer(nn.Module):
    def __init__(self, n_codes=32, dim=10, beta=0.25):
        super().__init__()
        self.codebook = nn.Embedding(n_codes, dim)
        self.beta = beta

    def forward(self, z):
        b, c, h, w = z.shape
        flat = z.permute(0, 2, 3, 1).reshape(-1, c)
        e = self.codebook.weight
        dist = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ e.t() + e.pow(2).sum(1)
        codes = dist.argmin(dim=1)
        zq = self.codebook(codes).view(b, h, w, c).permute(0, 3, 1, 2)
        vq_loss = F.mse_loss(zq, z.detach()) + self.beta * F.mse_loss(z, zq.detach())
        zq = z + (zq - z).detach()
        return zq, vq_loss


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(3, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, 10, 4, 2, 1))
        self.vq = VectorQuantizer()
        self.dec = nn.Sequential(nn.ConvTranspose2d(10, 16, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(16, 3, 4, 2, 1))

    def forward(self, images):
        zq, vq_loss = self.vq(self.enc(images))
        recon = self.dec(zq)
        return F.mse_loss(recon, images) + vq_loss


def example():
    torch.manual_seed(0)
    return (torch.rand(5, 3, 24, 32),)
