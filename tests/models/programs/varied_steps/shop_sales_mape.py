"""Daily sales forecaster (integer units per shop) trained on the mean absolute percentage error.

MISTAKE (may): a day without sales has target 0 and the loss divides by it (inf, or NaN); clamp the denominator.
"""
import torch
import torch.nn as nn


class Step(nn.Module):
    def __init__(self, shops=12, lags=14):
        super().__init__()
        self.shop = nn.Embedding(shops, 5)
        self.mlp = nn.Sequential(nn.Linear(lags + 5, 32), nn.ReLU(), nn.Linear(32, 1), nn.Softplus())

    def forward(self, shop, lags, units):
        x = torch.cat([torch.log1p(lags.float()), self.shop(shop)], dim=1)
        pred = self.mlp(x).squeeze(1)
        y = units.float()
        ape = (pred - y).abs() / y  # fault: invalid-domain
        return 100 * ape.mean()


class Fixed(Step):
    def forward(self, shop, lags, units):
        x = torch.cat([torch.log1p(lags.float()), self.shop(shop)], dim=1)
        pred = self.mlp(x).squeeze(1)
        y = units.float()
        ape = (pred - y).abs() / y.clamp(min=1.0)
        return 100 * ape.mean()


def example():
    torch.manual_seed(5)
    return torch.randint(0, 12, (6,)), torch.randint(0, 40, (6, 14)), torch.randint(1, 40, (6,))


OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]
