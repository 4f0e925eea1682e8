"""Heteroscedastic wind-power regression: predict mean and log variance.

MISTAKE (silent): the squared error is multiplied by exp(+logvar), the precision is exp(-logvar).
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.SiLU(), nn.Linear(32, 32), nn.SiLU())
        self.mean, self.logvar = nn.Linear(32, 1), nn.Linear(32, 1)

    def nll(self, y, m, lv):
        return 0.5 * (lv + (y - m) ** 2 * torch.exp(lv))  # fault: one-sided-loss

    def forward(self, weather, power):
        h = self.net(weather)
        m = self.mean(h).sigmoid()
        lv = self.logvar(h).clamp(-6.0, 3.0)
        return self.nll(power, m, lv).mean()  # fault: one-sided-loss


class Fixed(Step):
    def nll(self, y, m, lv):
        return 0.5 * (lv + (y - m) ** 2 * torch.exp(-lv))


def example():
    torch.manual_seed(33)
    return torch.randn(7, 8), torch.rand(7, 1)


OPEN = [{0: "rows"}, {0: "rows"}]
