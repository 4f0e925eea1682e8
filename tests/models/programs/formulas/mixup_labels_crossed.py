"""Mixup: inputs lam*x + (1-lam)*x[perm], but lam weights the loss of the permuted label.

With lam = 0.8 the picture is 80% class a and the loss 80% class b.  Fix: exchange the labels.
"""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))

    def criterion(self, out, ya, yb, lam):
        return lam * F.cross_entropy(out, yb) + (1 - lam) * F.cross_entropy(out, ya)

    def forward(self, x, y, lam, perm):
        mixed = lam * x + (1 - lam) * x[perm]
        return self.criterion(self.f(mixed), y, y[perm], lam)  # fault: mixed-labels-crossed


class Fixed(Step):
    def criterion(self, out, ya, yb, lam):
        return lam * F.cross_entropy(out, ya) + (1 - lam) * F.cross_entropy(out, yb)


def example():
    torch.manual_seed(30)
    return torch.rand(4, 3, 9, 9), torch.tensor([0, 3, 1, 4]), torch.tensor(0.8), torch.tensor([2, 0, 3, 1])
