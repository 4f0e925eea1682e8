"""REINFORCE: the return of step t is taken as the sum of the rewards up to t.

cumsum over time without flipping gives past rewards, not the reward to go.  Fix: flip, cumsum, flip.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.pi = nn.Linear(5, 4)

    def returns_to_go(self, r):
        return torch.cumsum(r, dim=1)

    def forward(self, obs, act, rew):
        logp = torch.log_softmax(self.pi(obs), -1).gather(-1, act.unsqueeze(-1)).squeeze(-1)
        G = self.returns_to_go(rew)  # fault: rewards-so-far
        G = (G - G.mean()) / (G.std() + 1e-6)
        return -(logp * G).sum(1).mean()


class Fixed(Step):
    def returns_to_go(self, r):
        return torch.cumsum(r.flip(1), dim=1).flip(1)


def example():
    torch.manual_seed(18)
    return torch.randn(3, 7, 5), torch.randint(0, 4, (3, 7)), torch.rand(3, 7)
