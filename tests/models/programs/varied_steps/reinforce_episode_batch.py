"""REINFORCE on a batch of fixed-length episodes, rewards [episodes, steps], with undiscounted rewards-to-go as weights.

MISTAKE (silent): flip and cumsum run along dim 0 (the episodes), so "returns" add rewards of different episodes; the time axis is dim 1.
"""
import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self, obs=6, act=4):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs, 24), nn.Tanh(), nn.Linear(24, act))

    def forward(self, o):
        return torch.log_softmax(self.body(o), dim=-1)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.policy = Policy()

    def forward(self, obs, actions, rewards):
        logp = self.policy(obs)                                   # [N, T, A]
        logp_a = logp.gather(2, actions.unsqueeze(-1)).squeeze(-1)  # [N, T]
        R = rewards.flip(0).cumsum(0).flip(0)  # fault: reduction-over-batch-axis
        R = (R - R.mean()) / (R.std() + 1e-6)
        return -(logp_a * R).sum(dim=1).mean()


class Fixed(Step):
    def forward(self, obs, actions, rewards):
        logp = self.policy(obs)                                   # [N, T, A]
        logp_a = logp.gather(2, actions.unsqueeze(-1)).squeeze(-1)  # [N, T]
        R = rewards.flip(1).cumsum(1).flip(1)
        R = (R - R.mean()) / (R.std() + 1e-6)
        return -(logp_a * R).sum(dim=1).mean()


def example():
    torch.manual_seed(0)
    return torch.randn(5, 9, 6), torch.randint(0, 4, (5, 9)), torch.rand(5, 9)


OPEN = [{0: "episodes"}, {0: "episodes"}, {0: "episodes"}]
