"""Simclr pairs.

MISTAKE (silent): normalises each feature over the batch, embeddings must be normalised along dim=1.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Projector(nn.Module):
    def __init__(self, in_dim=40, hidden=64, out_dim=26):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(in_dim, hidden), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, out_dim))

    def forward(self, x):
        return self.head(self.backbone(x))


def nt_xent(z1, z2, temperature=0.5):
    n = z1.shape[0]
    z = torch.cat([z1, z2], dim=0)
    z = F.normalize(z, dim=0)  # fault: reduction-over-batch-axis
    sim = z @ z.t() / temperature
    eye = torch.eye(2 * n, dtype=torch.bool, device=z.device)
    sim = sim.masked_fill(eye, -1e9)
    target = torch.cat([torch.arange(n, 2 * n), torch.arange(0, n)]).to(z.device)
    return F.cross_entropy(sim, target)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Projector()

    def forward(self, view1, view2):
        return nt_xent(self.encoder(view1), self.encoder(view2))  # fault: reduction-over-batch-axis


def example():
    torch.manual_seed(0)
    x = torch.randn(12, 40)
    return x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)
