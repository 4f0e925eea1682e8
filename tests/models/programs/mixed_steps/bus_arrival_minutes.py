"""Regress the minutes until the next bus from stop features and the hour of day.

MISTAKE (silent): the head gives (B, 1), the target is (B,); smooth_l1 broadcasts to (B, B). Squeeze the head.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.hour = nn.Embedding(24, 6)
        self.body = nn.Sequential(nn.Linear(9 + 6, 32), nn.GELU(), nn.Linear(32, 32), nn.GELU())
        self.out = nn.Linear(32, 1)

    def predict(self, feats, hour):
        h = self.body(torch.cat([feats, self.hour(hour)], dim=-1))
        return F.softplus(self.out(h))

    def forward(self, feats, hour, minutes):
        eta = self.predict(feats, hour)
        err = (torch.log1p(eta) - torch.log1p(minutes)).abs()  # fault: silent-broadcast-in-loss
        small = 0.5 * err ** 2
        return torch.where(err < 1.0, small, err - 0.5).mean()


class Fixed(Step):
    def predict(self, feats, hour):
        return super().predict(feats, hour).squeeze(-1)


def example():
    g = torch.Generator().manual_seed(4)
    return (torch.randn(6, 9, generator=g), torch.randint(0, 24, (6,), generator=g), torch.rand(6, generator=g) * 30)


OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]
