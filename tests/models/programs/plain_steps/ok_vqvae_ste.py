import torch
import torch.nn.functional as F
from torch import nn


class VQVAE(nn.Module):
    def __init__(self, k=16, z=4):
        super().__init__()
        self.e, self.d = nn.Linear(25, z), nn.Linear(z, 25)
        self.book = nn.Embedding(k, z)

    def forward(self, x):
        ze = self.e(x)
        idx = (ze.unsqueeze(1) - self.book.weight).pow(2).sum(-1).argmin(1)
        zq = self.book(idx)
        vq = F.mse_loss(zq, ze.detach()) + 0.25 * F.mse_loss(ze, zq.detach())
        zq = ze + (zq - ze).detach()
        return F.mse_loss(self.d(zq), x) + vq


def example():
    return (torch.randn(9, 25),)


Step = VQVAE
