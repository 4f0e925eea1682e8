"""Sac update.

CORRECT: maximise q and entropy, so plus logp and minus q.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 64), nn.ReLU(), nn.Linear(64, o))


class Step(nn.Module):
    """Actor and temperature losses of SAC."""

    def __init__(self, obs=11, act=3):
        super().__init__()
        self.actor = mlp(obs, 2 * act)
        self.q1, self.q2 = mlp(obs + act, 1), mlp(obs + act, 1)
        self.log_alpha = nn.Parameter(torch.tensor(-1.0))
        self.target_entropy = -float(act)

    def forward(self, obs, noise):
        mu, log_std = self.actor(obs).chunk(2, dim=-1)
        log_std = log_std.clamp(-5, 2)
        u = mu + log_std.exp() * noise
        a = torch.tanh(u)
        logp = (-0.5 * noise.pow(2) - log_std - 0.5 * math.log(2 * math.pi)).sum(-1)
        logp = logp - (2 * (math.log(2) - u - F.softplus(-2 * u))).sum(-1)
        sa = torch.cat([obs, a], dim=-1)
        q = torch.min(self.q1(sa), self.q2(sa)).squeeze(-1)
        alpha = self.log_alpha.exp().detach()
        actor_loss = (alpha * logp - q).mean()
        alpha_loss = -(self.log_alpha * (logp + self.target_entropy).detach()).mean()
        return actor_loss, alpha_loss


def example():
    torch.manual_seed(0)
    return torch.randn(64, 11), torch.randn(64, 3)
