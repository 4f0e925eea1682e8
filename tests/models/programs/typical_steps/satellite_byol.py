"""BYOL on two augmented views of satellite patches with an EMA target.

CORRECT: no negatives; loss 2 - 2 cos; the target branch is detached and has no predictor; both directions are summed.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, bands=4, dim=20):
        super().__init__()
        self.conv = nn.Conv2d(bands, 16, 3, stride=2)
        self.proj = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, dim))

    def forward(self, x):
        return self.proj(F.relu(self.conv(x)).flatten(2).mean(dim=2))


class Step(nn.Module):
    def __init__(self, dim=20):
        super().__init__()
        self.online = Encoder(dim=dim)
        self.predictor = nn.Sequential(nn.Linear(dim, 24), nn.ReLU(), nn.Linear(24, dim))
        self.ema = Encoder(dim=dim)
        for p in self.ema.parameters():
            p.requires_grad = False

    @staticmethod
    def regression_loss(p, z):
        p = F.normalize(p, dim=-1)
        z = F.normalize(z, dim=-1)
        return 2 - 2 * (p * z).sum(dim=-1)

    def forward(self, view1, view2):
        p1 = self.predictor(self.online(view1))
        p2 = self.predictor(self.online(view2))
        z1 = self.ema(view1).detach()
        z2 = self.ema(view2).detach()
        return (self.regression_loss(p1, z2) + self.regression_loss(p2, z1)).mean()


def example():
    g = torch.Generator().manual_seed(1)
    x = torch.rand(6, 4, 12, 12, generator=g)
    return (x + 0.05 * torch.randn(x.shape, generator=g), x.flip(-1))


OPEN = [{0: "batch"}, {0: "batch"}]
