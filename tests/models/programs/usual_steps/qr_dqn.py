"""Qr dqn.

CORRECT: all pairs of target and predicted quantiles, [B,N,N] by definition.
"""
import torch
import torch.nn as nn


class QuantileQ(nn.Module):
    def __init__(self, obs=9, n_actions=4, n_quant=11):
        super().__init__()
        self.n_actions, self.n_quant = n_actions, n_quant
        self.net = nn.Sequential(nn.Linear(obs, 40), nn.ReLU(), nn.Linear(40, n_actions * n_quant))

    def forward(self, o):
        return self.net(o).view(-1, self.n_actions, self.n_quant)


class Step(nn.Module):
    def __init__(self, gamma=0.99, n_quant=11):
        super().__init__()
        self.online, self.target = QuantileQ(n_quant=n_quant), QuantileQ(n_quant=n_quant)
        self.gamma = gamma
        self.register_buffer("tau", (torch.arange(n_quant) + 0.5) / n_quant)

    def pick(self, q, a):
        return q.gather(1, a.view(-1, 1, 1).expand(-1, 1, q.shape[2])).squeeze(1)

    def forward(self, obs, action, reward, next_obs, done):
        theta = self.pick(self.online(obs), action)
        with torch.no_grad():
            next_q = self.target(next_obs)
            best = next_q.mean(dim=2).argmax(dim=1)
            target = reward[:, None] + self.gamma * (1 - done[:, None]) * self.pick(next_q, best)
        u = target[:, None, :] - theta[:, :, None]
        huber = torch.where(u.abs() <= 1.0, 0.5 * u * u, u.abs() - 0.5)
        rho = (self.tau[None, :, None] - (u < 0).float()).abs() * huber
        return rho.mean(dim=2).sum(dim=1).mean()


def example():
    torch.manual_seed(0)
    n = 14
    return torch.randn(n, 9), torch.randint(0, 4, (n,)), torch.randn(n), torch.randn(n, 9), (torch.rand(n) < 0.2).float()
