import torch
from torch import nn


class BarlowTwins(nn.Module):
    def __init__(self, d=10, lambd=0.005):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, d))
        self.lambd = lambd
        self.d = d

    def forward(self, y1, y2):
        z1, z2 = self.backbone(y1), self.backbone(y2)
        z1 = (z1 - z1.mean(0)) / (z1.std(0) + 1e-5)
        z2 = (z2 - z2.mean(0)) / (z2.std(0) + 1e-5)
        c = z1.T @ z2 / z1.shape[0]
        eye = torch.eye(self.d)
        on_diag = ((c - 1) ** 2 * eye).sum()
        off_diag = (c ** 2 * (1 - eye)).sum()
        return on_diag + self.lambd * off_diag


def example():
    return (torch.randn(16, 24), torch.randn(16, 24))


Step = BarlowTwins
