"""Backward direction of an RNN by flipping input and output in time; the last state of the backward pass is at t=0."""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.GRU(4, 5, batch_first=True)
        self.b = nn.GRU(4, 5, batch_first=True)
        self.o = nn.Linear(10, 1)

    def forward(self, x, y):
        of = self.f(x)[0]
        ob = self.b(x.flip(1))[0].flip(1)
        last = torch.cat([of[:, -1], ob[:, 0]], 1)
        return (self.o(last)[:, 0] - y).abs().mean()


def example():
    torch.manual_seed(58)
    return torch.randn(3, 6, 4), torch.randn(3)
