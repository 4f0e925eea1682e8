"""Ppo continuous.

MISTAKE (silent): must be min of the surrogates (or max of the negated ones), max undoes the clipping.
"""
import math
import torch
import torch.nn as nn


class GaussianPolicy(nn.Module):
    def __init__(self, obs_dim=11, act_dim=3, hidden=32):
        super().__init__()
        self.mu = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, act_dim))
        self.log_std = nn.Parameter(torch.full((act_dim,), -0.5))

    def log_prob(self, obs, act):
        mu = self.mu(obs)
        z = (act - mu) / self.log_std.exp()
        return (-0.5 * z ** 2 - self.log_std - 0.5 * math.log(2 * math.pi)).sum(-1)


class Step(nn.Module):
    def __init__(self, clip=0.2):
        super().__init__()
        self.policy = GaussianPolicy()
        self.critic = nn.Sequential(nn.Linear(11, 32), nn.Tanh(), nn.Linear(32, 1))
        self.clip = clip

    def forward(self, obs, act, old_logp, adv, ret):
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        ratio = torch.exp(self.policy.log_prob(obs, act) - old_logp)
        clipped = torch.clamp(ratio, 1.0 - self.clip, 1.0 + self.clip)
        pg_loss = -torch.max(ratio * adv, clipped * adv).mean()  # fault: one-sided-loss
        v_loss = 0.5 * (self.critic(obs).squeeze(-1) - ret).pow(2).mean()
        return pg_loss + 0.5 * v_loss


def example():
    torch.manual_seed(0)
    n = 36
    return torch.randn(n, 11), torch.randn(n, 3), -3 + 0.1 * torch.randn(n), torch.randn(n), torch.randn(n)
