"""Truncated-BPTT sensor model; the initial state is built for the training batch size.

h0 / c0 are buffers of batch 4 while the batch axis is open: any other batch size fails in the
LSTM.  Fix: build the state from x.size(0).
"""
import torch
from torch import nn

OPEN = [{0: "batch"}, {0: "batch"}]


class Step(nn.Module):
    def __init__(self, hid=9):
        super().__init__()
        self.hid = hid
        self.lstm = nn.LSTM(3, hid, batch_first=True)
        self.fc = nn.Linear(hid, 1)
        self.register_buffer("h0", torch.zeros(1, 4, hid))
        self.register_buffer("c0", torch.zeros(1, 4, hid))

    def state(self, x):
        return self.h0, self.c0

    def forward(self, x, y):
        out, _ = self.lstm(x, self.state(x))  # fault: no-rule
        return ((self.fc(out[:, -1]).squeeze(1) - y) ** 2).mean()


class Fixed(Step):
    def state(self, x):
        z = x.new_zeros(1, x.size(0), self.hid)
        return z, z


def example():
    torch.manual_seed(41)
    return torch.randn(4, 11, 3), torch.randn(4)
