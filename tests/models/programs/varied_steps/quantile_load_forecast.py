"""Electricity-load forecaster with three quantile outputs per hour, trained with the pinball loss written out.

MISTAKE (silent): pinball is max(q*e, (q-1)*e); with min the loss is never positive and is unbounded below, so training pushes forecasts away.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, lookback=24, horizon=6, quantiles=(0.1, 0.5, 0.9)):
        super().__init__()
        self.h = horizon
        self.register_buffer("q", torch.tensor(quantiles))
        self.net = nn.Sequential(nn.Linear(lookback, 48), nn.ReLU(), nn.Linear(48, horizon * len(quantiles)))

    def forward(self, history, future):
        out = self.net(history).view(-1, self.h, 3)
        err = future.unsqueeze(-1) - out
        loss = torch.minimum(self.q * err, (self.q - 1) * err)  # fault: unbounded-loss
        return loss.sum(-1).mean()


class Fixed(Step):
    def forward(self, history, future):
        out = self.net(history).view(-1, self.h, 3)
        err = future.unsqueeze(-1) - out
        loss = torch.maximum(self.q * err, (self.q - 1) * err)
        return loss.sum(-1).mean()


def example():
    torch.manual_seed(12)
    return torch.randn(5, 24), torch.randn(5, 6)


OPEN = [{0: "n"}, {0: "n"}]
