"""BYOL with a momentum encoder: no gradient into the target; 2 - 2cos per sample; views swapped by concat
and flip so that sample i of view 1 meets sample i of view 2."""
import torch
import torch.nn.functional as F
from torch import nn

OPEN = [{0: "batch"}, {0: "batch"}]


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.online = nn.Linear(14, 8)
        self.pred = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
        self.target = nn.Linear(14, 8)
        for p in self.target.parameters():
            p.requires_grad = False

    def forward(self, v1, v2):
        both = torch.stack([v1, v2])
        p = F.normalize(self.pred(self.online(both)), dim=-1)
        with torch.no_grad():
            z = F.normalize(self.target(both.flip(0)), dim=-1)
        return (2 - 2 * (p * z).sum(-1)).mean(dim=1).sum()


def example():
    torch.manual_seed(71)
    return torch.randn(5, 14), torch.randn(5, 14)
