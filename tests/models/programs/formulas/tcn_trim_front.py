"""Temporal convolution net for forecasting: symmetric padding trimmed at the wrong end.

Conv1d pads (k-1)*d on both sides; cutting the first samples leaves an anti-causal filter that sees the next steps
it has to predict.  Fix: [..., :-pad].
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, k=3, dil=2):
        super().__init__()
        self.pad = (k - 1) * dil
        self.c = nn.Conv1d(2, 6, k, padding=self.pad, dilation=dil)
        self.o = nn.Conv1d(6, 2, 1)

    def chomp(self, z):
        return z[:, :, self.pad:]

    def forward(self, x):
        h = torch.relu(self.chomp(self.c(x)))  # fault: prediction-reads-target
        pred = self.o(h)
        return torch.mean((pred[:, :, :-1] - x[:, :, 1:]) ** 2)


class Fixed(Step):
    def chomp(self, z):
        return z[:, :, :-self.pad]


def example():
    torch.manual_seed(45)
    return (torch.randn(2, 2, 11),)
