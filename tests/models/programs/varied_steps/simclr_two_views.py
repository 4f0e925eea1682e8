"""NT-Xent on two augmented views: 2N embeddings, each has one positive and 2N - 2 negatives.

MISTAKE (silent): F.normalize(z, dim=0) makes unit columns over the batch instead of unit embeddings, so z @ z.T holds no cosine similarities. It should be dim=1.
"""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    temperature = 0.2

    def __init__(self, dim=20, proj=12):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(dim, 32), nn.GELU())
        self.projector = nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.Linear(32, proj))

    def forward(self, view1, view2):
        n = view1.shape[0]
        z = torch.cat([self.projector(self.backbone(v)) for v in (view1, view2)])
        z = F.normalize(z, dim=0)  # fault: reduction-over-batch-axis
        sim = z @ z.t() / self.temperature
        sim = sim.masked_fill(torch.eye(2 * n, dtype=torch.bool), float("-inf"))
        target = torch.cat([torch.arange(n) + n, torch.arange(n)])
        return F.cross_entropy(sim, target)


class Fixed(Step):
    def forward(self, view1, view2):
        n = view1.shape[0]
        z = torch.cat([self.projector(self.backbone(v)) for v in (view1, view2)])
        z = F.normalize(z, dim=1)
        sim = z @ z.t() / self.temperature
        sim = sim.masked_fill(torch.eye(2 * n, dtype=torch.bool), float("-inf"))
        target = torch.cat([torch.arange(n) + n, torch.arange(n)])
        return F.cross_entropy(sim, target)


def example():
    torch.manual_seed(0)
    x = torch.randn(5, 20)
    return x + 0.1 * torch.randn(5, 20), x + 0.1 * torch.randn(5, 20)
