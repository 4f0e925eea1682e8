"""Xray ntxent.

MISTAKE (silent): self similarity on the diagonal is not excluded from the denominator.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Enc(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.c1 = nn.Conv2d(1, 16, 5, stride=3)
        self.c2 = nn.Conv2d(16, 32, 3, stride=2)
        self.proj = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, x):
        h = F.relu(self.c2(F.relu(self.c1(x))))
        return self.proj(h.amax(dim=(2, 3)))


class Step(nn.Module):
    def __init__(self, tau=0.2):
        super().__init__()
        self.enc = Enc()
        self.tau = tau

    def forward(self, x1, x2):
        n = x1.shape[0]
        z = F.normalize(torch.cat([self.enc(x1), self.enc(x2)], dim=0), dim=1)
        sim = torch.mm(z, z.T) / self.tau
        pos = torch.cat([sim.diagonal(n), sim.diagonal(-n)])
        denom = torch.exp(sim).sum(dim=1)  # fault: candidate-is-itself
        return (-pos + torch.log(denom)).mean()  # fault: candidate-is-itself


def example():
    torch.manual_seed(0)
    return torch.rand(20, 1, 36, 36), torch.rand(20, 1, 36, 36)
