"""Discrete-time survival net: one hazard logit for each of 8 intervals; observed and censored subjects in one likelihood.

CORRECT: log(1 - sigmoid(z)) = logsigmoid(-z); a subject contributes log(1-h) for all intervals before its own, then log h if it had the event
and log(1-h) if it was censored at the end of that interval.
"""
import torch
from torch import nn
from torch.nn.functional import logsigmoid


class Step(nn.Module):
    def __init__(self, p=6, bins=8):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(p, 20), nn.ReLU(), nn.Linear(20, bins))
        self.register_buffer("grid", torch.arange(bins))

    def forward(self, x, interval, event):
        z = self.net(x)
        log_h, log_s = logsigmoid(z), logsigmoid(-z)
        at = (self.grid[None, :] == interval[:, None]).float()
        before = (self.grid[None, :] < interval[:, None]).float()
        e = event[:, None]
        ll = before * log_s + at * (e * log_h + (1 - e) * log_s)
        return -ll.sum(1).mean()


def example():
    torch.manual_seed(109)
    return torch.randn(6, 6), torch.randint(0, 8, (6,)), torch.tensor([1., 0., 1., 1., 0., 1.])


OPEN = [{0: "n"}, {0: "n"}, {0: "n"}]
