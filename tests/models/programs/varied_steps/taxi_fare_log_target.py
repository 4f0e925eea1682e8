"""Taxi-fare regression in log space that also reports the error in dollars.

CORRECT: the loss compares with log1p(fare), the metric inverts it with expm1; the hour of the day is turned into sin and cos, cast to float first.
"""
import math
import torch
import torch.nn as nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, pickup, dropoff, hour, fare):
        ang = hour.float() * (2 * math.pi / 24)
        dist = (pickup - dropoff).abs()
        x = torch.cat([pickup, dist, torch.stack([ang.sin(), ang.cos()], dim=1)], dim=1)
        out = self.net(x).view(-1)
        loss = (out - torch.log1p(fare)).square().mean()
        with torch.no_grad():
            rmse = (torch.expm1(out) - fare).square().mean().sqrt()
        return loss, rmse


def example():
    torch.manual_seed(108)
    return torch.randn(7, 2), torch.randn(7, 2), torch.randint(0, 24, (7,)), 5 + 30 * torch.rand(7)


OPEN = [{0: "trips"}, {0: "trips"}, {0: "trips"}, {0: "trips"}]
