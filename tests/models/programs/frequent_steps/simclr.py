"""SimCLR with the NT-Xent loss.

MISTAKE (silent): the diagonal (self similarity) is not masked out of the softmax.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SimCLR(nn.Module):
    def __init__(self, out_dim=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, 12, 3, stride=2), nn.ReLU(), nn.Conv2d(12, 24, 3, stride=2), nn.ReLU())
        self.projection = nn.Sequential(nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, out_dim))

    def forward(self, x):
        return self.projection(self.encoder(x).mean(dim=(2, 3)))


class NTXent(nn.Module):
    def __init__(self, temperature=0.5):
        super().__init__()
        self.temperature = temperature

    def forward(self, z_i, z_j):
        n = z_i.size(0)
        z = F.normalize(torch.cat([z_i, z_j], dim=0), dim=1)
        sim = torch.mm(z, z.t()) / self.temperature
        targets = (torch.arange(2 * n) + n) % (2 * n)
        return F.cross_entropy(sim, targets)  # fault: candidate-is-itself


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = SimCLR()
        self.loss = NTXent()

    def forward(self, x_i, x_j):
        return self.loss(self.model(x_i), self.model(x_j))


def example():
    g = torch.Generator().manual_seed(34)
    a = torch.rand(6, 3, 14, 14, generator=g)
    return a, (a + 0.1 * torch.randn(6, 3, 14, 14, generator=g)).clamp(0, 1)
