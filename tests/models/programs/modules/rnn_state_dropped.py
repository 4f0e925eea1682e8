"""Hand-rolled sequence model over T steps with a GRUCell.

The cell is always called with the initial state h0; its result is never carried to the
next step, so there is no memory.  Fix: h = self.cell(x_t, h).
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, inp=5, hid=12):
        super().__init__()
        self.cell = nn.GRUCell(inp, hid)
        self.h0 = nn.Parameter(torch.zeros(1, hid))
        self.read = nn.Linear(hid, 1)

    def unroll(self, xs):
        h0 = self.h0.expand(xs.size(1), -1)
        states = []
        for x_t in xs.unbind(0):
            h = self.cell(x_t, h0)  # wrong: state of the previous step dropped
            states.append(h)
        return torch.stack(states)

    def forward(self, xs, ys):
        return nn.functional.mse_loss(self.read(self.unroll(xs)).squeeze(-1), ys)  # fault: state-never-carried


class Fixed(Step):
    def unroll(self, xs):
        h = self.h0.expand(xs.size(1), -1)
        states = []
        for x_t in xs.unbind(0):
            h = self.cell(x_t, h)
            states.append(h)
        return torch.stack(states)


def example():
    torch.manual_seed(29)
    return torch.randn(6, 3, 5), torch.randn(6, 3)
