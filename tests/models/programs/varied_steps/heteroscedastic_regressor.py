"""House-price regressor that predicts a mean and a log variance; Gaussian negative log likelihood by hand.

MISTAKE (silent): the squared error is multiplied by exp(+log_var); the precision is exp(-log_var). As written both terms want the
variance at 0, and it falls without bound.
"""
import torch
import torch.nn as nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(9, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU())
        self.mu = nn.Linear(40, 1)
        self.log_var = nn.Linear(40, 1)

    def forward(self, x, price):
        h = self.trunk(x)
        mu = self.mu(h).squeeze(-1)
        lv = self.log_var(h).squeeze(-1)
        y = torch.log1p(price)
        nll = 0.5 * (lv + (y - mu) ** 2 * lv.exp())  # fault: one-sided-loss
        return nll.mean()


class Fixed(Step):
    def forward(self, x, price):
        h = self.trunk(x)
        mu = self.mu(h).squeeze(-1)
        lv = self.log_var(h).squeeze(-1)
        y = torch.log1p(price)
        nll = 0.5 * (lv + (y - mu) ** 2 * (-lv).exp())
        return nll.mean()


def example():
    g = torch.Generator().manual_seed(77)
    return torch.randn(6, 9, generator=g), 1e5 * torch.rand(6, generator=g)


OPEN = [{0: "b"}, {0: "b"}]
