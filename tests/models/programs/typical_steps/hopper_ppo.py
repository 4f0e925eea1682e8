"""PPO with a Gaussian policy and value clipping for a hopper robot.

CORRECT: max for the clipped value loss, min for the surrogate, minus the entropy; advantages normalised over the batch.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class GaussianActorCritic(nn.Module):
    def __init__(self, obs=11, act=3, hidden=24):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(obs, hidden), nn.Tanh(), nn.Linear(hidden, act))
        self.vf = nn.Sequential(nn.Linear(obs, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        self.log_std = nn.Parameter(torch.full((act,), -0.5))

    def forward(self, obs, action):
        mu = self.pi(obs)
        z = (action - mu) * torch.exp(-self.log_std)
        logp = (-0.5 * z.pow(2) - self.log_std - 0.5 * math.log(2 * math.pi)).sum(-1)
        entropy = (self.log_std + 0.5 + 0.5 * math.log(2 * math.pi)).sum()
        return logp, entropy, self.vf(obs).squeeze(-1)


class Step(nn.Module):
    def __init__(self, eps=0.2):
        super().__init__()
        self.ac = GaussianActorCritic()
        self.eps = eps

    def forward(self, obs, action, old_logp, old_value, adv, ret):
        logp, entropy, value = self.ac(obs, action)
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        ratio = (logp - old_logp).exp()
        unclipped = -adv * ratio
        clipped = -adv * ratio.clamp(1 - self.eps, 1 + self.eps)
        pg_loss = torch.max(unclipped, clipped).mean()
        v_clip = old_value + (value - old_value).clamp(-self.eps, self.eps)
        v_loss = 0.5 * torch.max((value - ret) ** 2, (v_clip - ret) ** 2).mean()
        return pg_loss + 0.5 * v_loss - 0.001 * entropy


def example():
    g = torch.Generator().manual_seed(1)
    r = lambda *s: torch.randn(*s, generator=g)
    return (r(6, 11), r(6, 3), r(6) - 3.0, r(6), r(6), r(6))


OPEN = [{0: "batch"}] * 6
