"""Byol dense.

MISTAKE (silent): default dim=1 is the patch axis of [B,P,D], must be dim=-1.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Backbone(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.stem = nn.Conv2d(3, dim, 8, stride=8)
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        x = self.stem(x).flatten(2).transpose(1, 2)
        return self.fc(F.gelu(x))


class Step(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.online = Backbone(dim)
        self.target = Backbone(dim)
        self.predictor = nn.Sequential(nn.Linear(dim, 96), nn.GELU(), nn.Linear(96, dim))

    def forward(self, view1, view2):
        p = self.predictor(self.online(view1))
        with torch.no_grad():
            z = self.target(view2)
        sim = F.cosine_similarity(p, z)  # fault: reduction-over-batch-axis
        return 2 - 2 * sim.mean()


def example():
    torch.manual_seed(0)
    return torch.rand(16, 3, 40, 40), torch.rand(16, 3, 40, 40)
