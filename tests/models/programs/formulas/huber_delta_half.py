"""Hand-written Huber loss with delta = 2 in a bounding box regressor.

The linear branch is delta*(|e| - 0.5), which only fits delta = 1: the loss jumps at |e| = delta (2 to 3).
Fix: delta*(|e| - 0.5*delta).
"""
import torch
from torch import nn


def huber(e, delta=2.0):
    a = e.abs()
    return torch.where(a <= delta, 0.5 * e * e, delta * (a - 0.5))


def huber2(e, delta=2.0):
    a = e.abs()
    return torch.where(a <= delta, 0.5 * e * e, delta * (a - 0.5 * delta))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(9, 9), nn.LeakyReLU(0.1), nn.Linear(9, 4))
        self.fn = huber

    def forward(self, roi, boxes):
        return self.fn(self.net(roi) - boxes).sum(-1).mean()  # fault: loss-jumps


class Fixed(Step):
    def __init__(self):
        super().__init__()
        self.fn = huber2


def example():
    torch.manual_seed(13)
    return torch.randn(5, 9), 4 * torch.randn(5, 4)
