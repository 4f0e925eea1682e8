"""Forecast the next three glucose readings from a CGM window with a two-layer GRU.

MISTAKE (silent): h[0] is the final state of the lower layer; the whole upper layer is unused. The top is h[-1].
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.rnn = nn.GRU(3, hidden, num_layers=2, batch_first=True)
        self.norm = nn.LayerNorm(hidden)
        self.dec = nn.Linear(hidden, 3)

    def summary(self, window):
        _, h = self.rnn(window)
        return h[0]  # fault: dead-node

    def forward(self, window, future):
        state = self.norm(self.summary(window))  # fault: dead-node
        guess = window[:, -1, :1] + self.dec(state)
        return torch.nn.functional.mse_loss(guess, future)


class Fixed(Step):
    def summary(self, window):
        _, h = self.rnn(window)
        return h[-1]


def example():
    torch.manual_seed(5)
    return torch.randn(5, 12, 3), torch.randn(5, 3)
