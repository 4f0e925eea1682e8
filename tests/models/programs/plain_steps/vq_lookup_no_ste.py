import torch
from torch import nn


class VQAE(nn.Module):
    def __init__(self, d=20, k=32, z=6):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(d, 24), nn.ReLU(), nn.Linear(24, z))
        self.codebook = nn.Embedding(k, z)
        self.decoder = nn.Sequential(nn.Linear(z, 24), nn.ReLU(), nn.Linear(24, d))

    def forward(self, x):
        ze = self.encoder(x)
        w = self.codebook.weight
        dist = (ze ** 2).sum(1, keepdim=True) - 2 * ze @ w.t() + (w ** 2).sum(1)
        idx = dist.argmin(dim=1)  # fault: loss-detached-from-parameters
        zq = self.codebook(idx)
        return ((self.decoder(zq) - x) ** 2).mean()


def example():
    return (torch.randn(10, 20),)


Step = VQAE
