import torch
import torch.nn.functional as F
from torch import nn


class VICRegLite(nn.Module):
    def __init__(self, d_in=20, d=12):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(d_in, 40), nn.ReLU(), nn.Linear(40, d))

    def forward(self, xa, xb):
        za, zb = self.f(xa), self.f(xb)
        sim = F.mse_loss(za, zb)
        var = 0.0
        for z in (za, zb):
            std = torch.sqrt(z.var(dim=1) + 1e-4)  # fault: reduction-over-batch-axis
            var = var + F.relu(1.0 - std).mean()
        return 25.0 * sim + 25.0 * var


def example():
    return (torch.randn(16, 20), torch.randn(16, 20))


Step = VICRegLite
OPEN = [{0: "batch"}, {0: "batch"}]
