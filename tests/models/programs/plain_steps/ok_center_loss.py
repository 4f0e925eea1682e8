import torch
import torch.nn.functional as F
from torch import nn


class CenterLoss(nn.Module):
    def __init__(self, k=5, d=8):
        super().__init__()
        self.f, self.c = nn.Linear(14, d), nn.Linear(d, k)
        self.centers = nn.Parameter(torch.randn(k, d))

    def forward(self, x, y):
        h = self.f(x)
        center = (h - self.centers[y]).pow(2).sum(dim=1).clamp(1e-12, 1e12)
        return F.cross_entropy(self.c(torch.relu(h)), y) + 0.003 * center.mean()


def example():
    return (torch.randn(8, 14), torch.randint(0, 5, (8,)))


Step = CenterLoss
