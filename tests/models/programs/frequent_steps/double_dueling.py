"""Dueling double DQN with importance weights from prioritised replay.

CORRECT: unusual, and as it is meant.
"""
import torch
import torch.nn as nn


class Dueling(nn.Module):
    def __init__(self, obs, n_act):
        super().__init__()
        self.feature = nn.Sequential(nn.Linear(obs, 32), nn.ReLU())
        self.adv = nn.Linear(32, n_act)
        self.val = nn.Linear(32, 1)

    def forward(self, x):
        x = self.feature(x)
        a = self.adv(x)
        return self.val(x) + a - a.mean(dim=1, keepdim=True)


class Step(nn.Module):
    def __init__(self, gamma=0.99, n_step=3):
        super().__init__()
        self.online, self.target = Dueling(7, 4), Dueling(7, 4)
        self.discount = gamma ** n_step

    def forward(self, obs, act, n_step_return, obs_n, terminal, is_weight):
        q = self.online(obs)[torch.arange(act.shape[0]), act]
        with torch.no_grad():
            greedy = self.online(obs_n).argmax(dim=1, keepdim=True)
            bootstrap = self.target(obs_n).gather(1, greedy).squeeze(1)
            bootstrap = torch.where(terminal, torch.zeros_like(bootstrap), bootstrap)
            y = n_step_return + self.discount * bootstrap
        td = y - q
        loss = (is_weight * td.pow(2)).mean()
        return loss, td.detach().abs()


def example():
    g = torch.Generator().manual_seed(36)
    n = 9
    return (torch.randn(n, 7, generator=g), torch.randint(0, 4, (n,), generator=g), torch.randn(n, generator=g),
            torch.randn(n, 7, generator=g), torch.rand(n, generator=g) < 0.25, torch.rand(n, generator=g) * 0.9 + 0.1)
