import torch
from torch import nn


class HeteroscedasticRegressor(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(d, 48), nn.SiLU())
        self.mu = nn.Linear(48, 1)
        self.logvar = nn.Linear(48, 1)

    def predict(self, x):
        h = self.trunk(x)
        mu = self.mu(h).squeeze(-1)
        logvar = self.logvar(h).clamp(-7.0, 7.0)  # fault: silent-broadcast-in-loss
        return mu, logvar

    def forward(self, x, y):
        mu, logvar = self.predict(x)
        nll = 0.5 * (logvar + (y - mu) ** 2 * torch.exp(-logvar))  # fault: silent-broadcast-in-loss
        return nll.mean()


def example():
    return (torch.randn(20, 6), torch.randn(20))


def Step():
    return HeteroscedasticRegressor(6)


OPEN = [{0: "batch"}, {0: "batch"}]
