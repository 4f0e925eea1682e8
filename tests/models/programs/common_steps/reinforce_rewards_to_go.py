"""Reinforce rewards to go.

CORRECT: REINFORCE with flip-cumsum-flip reward-to-go and a per-time baseline over episodes.
"""
import torch
from torch import nn


class GaussianPolicy(nn.Module):
    def __init__(self, obs, act):
        super().__init__()
        self.mu = nn.Sequential(nn.Linear(obs, 32), nn.Tanh(), nn.Linear(32, act))
        self.log_std = nn.Parameter(torch.full((act,), -0.5))

    def log_prob(self, obs, act):
        z = (act - self.mu(obs)) / self.log_std.exp()
        return (-0.5 * z.pow(2) - self.log_std - 0.9189385332).sum(dim=-1)


class Step(nn.Module):
    """REINFORCE, undiscounted reward-to-go, mean over the batch of episodes as the baseline."""

    def __init__(self):
        super().__init__()
        self.policy = GaussianPolicy(5, 2)

    def forward(self, obs, act, rew, alive):
        r = rew * alive
        rtg = r.flip(1).cumsum(1).flip(1)
        count = alive.sum(dim=0, keepdim=True).clamp(min=1)
        baseline = (rtg * alive).sum(dim=0, keepdim=True) / count   # time-dependent, shared by the episodes
        adv = rtg - baseline
        logp = self.policy.log_prob(obs, act)
        return -(logp * adv * alive).sum() / alive.sum(), rtg[:, 0].mean()


def example():
    torch.manual_seed(44)
    b, t = 5, 8
    alive = (torch.arange(t)[None] < torch.tensor([8, 3, 6, 8, 5])[:, None]).float()
    return torch.randn(b, t, 5), torch.randn(b, t, 2), torch.randn(b, t) + 1, alive
