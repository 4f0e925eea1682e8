"""Quantile regression DQN with a double-Q choice of the next action.

CORRECT: the TD errors broadcast on purpose: [B, 1, N] targets minus [B, N, 1] quantiles gives [B, N, N];
mean over the target samples, sum over the quantiles.
"""
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F


class QuantileNet(nn.Module):
    def __init__(self, obs=10, n_act=4, n_quant=8):
        super().__init__()
        self.n_act, self.n_quant = n_act, n_quant
        self.fc1 = nn.Linear(obs, 32)
        self.fc2 = nn.Linear(32, n_act * n_quant)

    def forward(self, obs):
        return self.fc2(F.relu(self.fc1(obs))).view(-1, self.n_act, self.n_quant)


class Step(nn.Module):
    def __init__(self, gamma=0.99, kappa=1.0):
        super().__init__()
        self.online = QuantileNet()
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.gamma, self.kappa = gamma, kappa
        n = self.online.n_quant
        self.register_buffer("tau", (torch.arange(n) + 0.5) / n)

    def pick(self, quantiles, action):
        idx = action.view(-1, 1, 1).expand(-1, 1, quantiles.size(2))
        return quantiles.gather(1, idx).squeeze(1)

    def forward(self, obs, action, reward, next_obs, done):
        theta = self.pick(self.online(obs), action)
        with torch.no_grad():
            best = self.online(next_obs).mean(dim=2).argmax(dim=1)
            nxt = self.pick(self.target(next_obs), best)
            target = reward.unsqueeze(1) + self.gamma * (1 - done.unsqueeze(1)) * nxt
        u = target.unsqueeze(1) - theta.unsqueeze(2)
        huber = torch.where(u.abs() <= self.kappa, 0.5 * u ** 2, self.kappa * (u.abs() - 0.5 * self.kappa))
        weight = (self.tau.view(1, -1, 1) - (u.detach() < 0).float()).abs()
        return (weight * huber / self.kappa).mean(dim=2).sum(dim=1).mean()


def example():
    g = torch.Generator().manual_seed(1)
    return (
        torch.randn(6, 10, generator=g),
        torch.randint(0, 4, (6,), generator=g),
        torch.randn(6, generator=g),
        torch.randn(6, 10, generator=g),
        (torch.rand(6, generator=g) > 0.7).float(),
    )


OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}, {0: "batch"}, {0: "batch"}]
