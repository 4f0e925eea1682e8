"""VQ-VAE with a straight-through estimator.

CORRECT: unusual, and as it is meant.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class VectorQuantizer(nn.Module):
    def __init__(self, n_e, e_dim, beta=0.25):
        super().__init__()
        self.n_e, self.e_dim, self.beta = n_e, e_dim, beta
        self.embedding = nn.Embedding(n_e, e_dim)
        self.embedding.weight.data.uniform_(-1.0 / n_e, 1.0 / n_e)

    def forward(self, z):
        z = z.permute(0, 2, 3, 1).contiguous()
        flat = z.view(-1, self.e_dim)
        codes = self.embedding.weight
        d = flat.pow(2).sum(1, keepdim=True) + codes.pow(2).sum(1) - 2 * flat @ codes.t()
        z_q = self.embedding(d.argmin(dim=1)).view(z.shape)
        loss = F.mse_loss(z_q, z.detach()) + self.beta * F.mse_loss(z_q.detach(), z)
        z_q = z + (z_q - z).detach()
        return z_q.permute(0, 3, 1, 2).contiguous(), loss


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(3, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, 8, 3, 1, 1))
        self.vq = VectorQuantizer(12, 8)
        self.dec = nn.Sequential(nn.Conv2d(8, 16, 3, 1, 1), nn.ReLU(), nn.ConvTranspose2d(16, 3, 4, 2, 1))

    def forward(self, x):
        z_q, vq_loss = self.vq(self.enc(x))
        recon = self.dec(z_q)
        return F.mse_loss(recon, x) + vq_loss


def example():
    g = torch.Generator().manual_seed(25)
    return (torch.rand(3, 3, 8, 8, generator=g) - 0.5,)
