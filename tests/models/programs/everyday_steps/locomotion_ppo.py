"""Locomotion ppo.

MISTAKE (silent): must be the minimum of the surrogates when it is negated.
"""
import math
import torch
import torch.nn as nn


class Step(nn.Module):
    """PPO with a diagonal Gaussian policy."""

    def __init__(self, obs=17, act=6, clip=0.2):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(obs, 64), nn.Tanh(), nn.Linear(64, act))
        self.critic = nn.Sequential(nn.Linear(obs, 64), nn.Tanh(), nn.Linear(64, 1))
        self.log_std = nn.Parameter(torch.zeros(act))
        self.clip = clip

    def forward(self, obs, act, logp_old, adv, ret):
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        mu = self.actor(obs)
        z = (act - mu) / self.log_std.exp()
        logp = (-0.5 * z ** 2 - self.log_std - 0.5 * math.log(2 * math.pi)).sum(-1)
        ratio = (logp - logp_old).exp()
        surr1 = ratio * adv
        surr2 = torch.clamp(ratio, 1 - self.clip, 1 + self.clip) * adv
        policy_loss = -torch.maximum(surr1, surr2).mean()  # fault: one-sided-loss
        value_loss = 0.5 * (self.critic(obs).squeeze(-1) - ret).pow(2).mean()
        return policy_loss + 0.5 * value_loss


def example():
    torch.manual_seed(0)
    n = 128
    return torch.randn(n, 17), torch.randn(n, 6), -6 - torch.rand(n) * 4, torch.randn(n), torch.randn(n)
