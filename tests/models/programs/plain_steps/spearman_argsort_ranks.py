import torch
from torch import nn


def rank(v):
    return v.argsort(dim=0).argsort(dim=0).float()  # fault: loss-detached-from-parameters


class NumeraiStep(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, feats, target):
        p, t = rank(self.m(feats)[:, 0]), rank(target)  # fault: loss-detached-from-parameters
        p, t = p - p.mean(), t - t.mean()
        corr = (p * t).sum() / (p.norm() * t.norm() + 1e-8)
        return 1 - corr


def example():
    return (torch.randn(18, 16), torch.randn(18))


Step = NumeraiStep
