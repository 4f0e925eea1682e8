"""Trains a drone's Gaussian policy with the clipped PPO objective. The larger of the two surrogates is taken, so the clipping no longer limits the update; it should be the minimum."""
import math

import torch
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 4))
        self.log_std = nn.Parameter(-0.5 * torch.ones(4))
        self.eps_clip = 0.2

    def log_prob(self, obs, act):
        mean = self.actor(obs)
        z = (act - mean) / self.log_std.exp()
        return (-0.5 * z ** 2 - self.log_std - 0.5 * math.log(2 * math.pi)).sum(-1)

    def forward(self, obs, act, old_logp, advantage):
        ratios = torch.exp(self.log_prob(obs, act) - old_logp)
        adv = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        surr1 = ratios * adv
        surr2 = torch.clamp(ratios, 1 - self.eps_clip, 1 + self.eps_clip) * adv
        return -torch.max(surr1, surr2).mean()  # fault: one-sided-loss


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(40, 12), 0.6 * torch.randn(40, 4), -3.5 + 0.3 * torch.randn(40), torch.randn(40))
