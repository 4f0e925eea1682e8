"""Vqvae codebook.

CORRECT: VQ-VAE straight-through estimator, codebook and commitment terms, uint8 scaled to [-1,1] with tanh.
"""
import torch
from torch import nn
import torch.nn.functional as F


class VectorQuantizer(nn.Module):
    def __init__(self, n_codes=32, dim=8, beta=0.25):
        super().__init__()
        self.codebook = nn.Embedding(n_codes, dim)
        self.codebook.weight.data.uniform_(-1.0 / n_codes, 1.0 / n_codes)
        self.beta = beta

    def forward(self, z):  # (B, D, H, W)
        b, d, h, w = z.shape
        flat = z.permute(0, 2, 3, 1).reshape(-1, d)
        dist = (flat.pow(2).sum(1, keepdim=True)
                - 2 * flat @ self.codebook.weight.t()
                + self.codebook.weight.pow(2).sum(1))
        idx = dist.argmin(dim=1)
        q = self.codebook(idx).view(b, h, w, d).permute(0, 3, 1, 2)
        vq_loss = F.mse_loss(q, z.detach()) + self.beta * F.mse_loss(z, q.detach())
        q = z + (q - z).detach()
        return q, vq_loss


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(3, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, 8, 3, padding=1))
        self.vq = VectorQuantizer()
        self.dec = nn.Sequential(nn.ConvTranspose2d(8, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, 3, 3, padding=1), nn.Tanh())

    def forward(self, img):
        x = img.float() / 127.5 - 1.0
        q, vq_loss = self.vq(self.enc(x))
        recon = self.dec(q)
        return F.mse_loss(recon, x) + vq_loss, recon


def example():
    g = torch.Generator().manual_seed(3)
    return (torch.randint(0, 256, (4, 3, 12, 12), generator=g, dtype=torch.uint8),)
