"""Trains a walking robot's policy and value function with PPO. The clamp is laid on ratio * advantage; only the ratio should be clamped and then multiplied by the advantage."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, obs=17, act=6):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(obs, 32), nn.Tanh(), nn.Linear(32, act))
        self.vf = nn.Sequential(nn.Linear(obs, 32), nn.Tanh(), nn.Linear(32, 1))
        self.log_std = nn.Parameter(torch.full((act,), -0.5))

    def log_prob(self, obs, a):
        mean = self.pi(obs)
        z = (a - mean) / self.log_std.exp()
        return (-0.5 * z * z - self.log_std - 0.5 * math.log(2 * math.pi)).sum(-1)

    def forward(self, obs, a, logp_old, adv, ret, clip: float = 0.2):
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        ratio = torch.exp(self.log_prob(obs, a) - logp_old)
        unclipped = ratio * adv
        clipped = torch.clamp(ratio * adv, 1 - clip, 1 + clip)  # fault: misbuilt-ratio
        policy_loss = -torch.min(unclipped, clipped).mean()
        value_loss = F.mse_loss(self.vf(obs).squeeze(-1), ret)
        entropy = (self.log_std + 0.5 * math.log(2 * math.pi * math.e)).sum()
        return policy_loss + 0.5 * value_loss - 0.01 * entropy


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(28, 17), torch.randn(28, 6), -6 + 0.3 * torch.randn(28), torch.randn(28), torch.randn(28))
