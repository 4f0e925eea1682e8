import torch
import torch.nn.functional as F
from torch import nn


class AgeGroup(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("edges", torch.tensor([13.0, 20.0, 35.0, 50.0, 65.0]))
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 5))

    def forward(self, feats, age):
        group = (age.unsqueeze(1) >= self.edges).sum(dim=1)
        return F.cross_entropy(self.net(feats), group)  # fault: class-index-out-of-range


def example():
    return (torch.randn(7, 8), torch.tensor([3., 14., 22., 41., 55., 60., 12.]))


Step = AgeGroup
