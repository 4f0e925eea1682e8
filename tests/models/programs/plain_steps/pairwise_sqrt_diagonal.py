import torch
from torch import nn


def pdist(e):
    sq = (e[:, None, :] - e[None, :, :]).pow(2).sum(-1)
    return torch.sqrt(sq)


class StressEmbedding(nn.Module):
    """parametric MDS: distances in the embedding should follow distances in the data"""

    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 2))

    def forward(self, x, d_high):
        d_low = pdist(self.f(x))  # fault: infinite-gradient
        return ((d_low - d_high) ** 2).sum() / (d_high ** 2).sum()


def example():
    x = torch.randn(8, 10)
    return (x, torch.cdist(x, x))


Step = StressEmbedding
