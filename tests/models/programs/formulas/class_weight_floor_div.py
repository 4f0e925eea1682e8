"""Inverse-frequency class weights in whole numbers.

floor(n / (C * count)) is an integer division: every class with more than n/C members gets weight 0 and drops out of the
loss.  Fix: true division.
"""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    C = 3

    def __init__(self):
        super().__init__()
        self.clf = nn.Linear(7, self.C)

    def weights(self, y):
        counts = F.one_hot(y, self.C).sum(0)
        return torch.div(counts.sum(), self.C * counts.clamp(min=1), rounding_mode="floor").float()

    def forward(self, x, y):
        w = self.weights(y)[y]  # fault: quotient-always-zero
        nll = -F.log_softmax(self.clf(x), 1).gather(1, y.view(-1, 1)).view(-1)
        return (w * nll).mean()


class Fixed(Step):
    def weights(self, y):
        counts = F.one_hot(y, self.C).sum(0)
        return y.numel() / (self.C * counts.clamp(min=1).float())


def example():
    torch.manual_seed(32)
    return torch.randn(10, 7), torch.tensor([0, 0, 0, 0, 0, 0, 1, 1, 1, 2])
