"""Reinforce batch.

MISTAKE (silent): sums over episodes (dim 0), time is dim 1.
"""
import torch
import torch.nn as nn


class Policy(nn.Module):
    def __init__(self, obs=6, act=3):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs, 64), nn.Tanh(), nn.Linear(64, act))

    def forward(self, o):
        return torch.log_softmax(self.net(o), dim=-1)


class Step(nn.Module):
    """REINFORCE on [episodes, steps] batches, undiscounted reward to go."""

    def __init__(self):
        super().__init__()
        self.policy = Policy()

    def forward(self, obs, act, rew, alive):
        logp = self.policy(obs).gather(-1, act.unsqueeze(-1)).squeeze(-1)
        r = rew * alive
        togo = r.flip(0).cumsum(0).flip(0)  # fault: reduction-over-batch-axis
        n = alive.sum().clamp(min=1.0)
        base = (togo * alive).sum() / n
        adv = (togo - base) * alive
        return -(logp * adv.detach()).sum() / n


def example():
    torch.manual_seed(0)
    b, t = 12, 40
    alive = (torch.arange(t)[None] < torch.randint(10, t, (b, 1))).float()
    return torch.randn(b, t, 6), torch.randint(0, 3, (b, t)), torch.rand(b, t), alive
