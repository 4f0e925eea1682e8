"""Quantile-regression DQN.

CORRECT: unusual, and as it is meant.
"""
import torch
import torch.nn as nn


class QuantileNet(nn.Module):
    def __init__(self, obs, n_act, n_quant):
        super().__init__()
        self.n_act, self.n_quant = n_act, n_quant
        self.net = nn.Sequential(nn.Linear(obs, 48), nn.ReLU(), nn.Linear(48, n_act * n_quant))

    def forward(self, x):
        return self.net(x).view(-1, self.n_act, self.n_quant)


def huber(u, k=1.0):
    a = u.abs()
    return torch.where(a <= k, 0.5 * u.pow(2), k * (a - 0.5 * k))


class Step(nn.Module):
    def __init__(self, n_quant=8, gamma=0.99):
        super().__init__()
        self.online = QuantileNet(5, 3, n_quant)
        self.target = QuantileNet(5, 3, n_quant)
        self.gamma = gamma
        self.register_buffer("tau", (torch.arange(n_quant).float() + 0.5) / n_quant)

    def forward(self, obs, action, reward, next_obs, not_done):
        rows = torch.arange(obs.shape[0])
        theta = self.online(obs)[rows, action]
        z_next = self.target(next_obs).detach()
        best = z_next.mean(dim=2).argmax(dim=1)
        y = reward[:, None] + self.gamma * not_done[:, None] * z_next[rows, best]
        u = y.unsqueeze(1) - theta.unsqueeze(2)
        weight = (self.tau.view(1, -1, 1) - (u.detach() < 0).float()).abs()
        return (weight * huber(u)).mean(dim=2).sum(dim=1).mean()


def example():
    g = torch.Generator().manual_seed(28)
    n = 7
    return (torch.randn(n, 5, generator=g), torch.randint(0, 3, (n,), generator=g), torch.randn(n, generator=g),
            torch.randn(n, 5, generator=g), (torch.rand(n, generator=g) > 0.2).float())
