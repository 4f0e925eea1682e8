"""Soft actor-critic: critic, actor and temperature losses in one step.

CORRECT: min of the twin critics, minus alpha * logp in the target, alpha * logp - q for the actor, tanh correction summed over actions.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Actor(nn.Module):
    def __init__(self, obs=5, act=2, hidden=24):
        super().__init__()
        self.fc = nn.Linear(obs, hidden)
        self.out = nn.Linear(hidden, 2 * act)

    def forward(self, s, eps):
        mu, log_std = self.out(F.relu(self.fc(s))).chunk(2, dim=-1)
        log_std = log_std.clamp(-5, 2)
        u = mu + log_std.exp() * eps
        logp = (-0.5 * eps ** 2 - log_std - 0.5 * math.log(2 * math.pi)).sum(-1, keepdim=True)
        logp = logp - (2 * (math.log(2.0) - u - F.softplus(-2 * u))).sum(-1, keepdim=True)
        return torch.tanh(u), logp


class Critic(nn.Module):
    def __init__(self, obs=5, act=2, hidden=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs + act, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, s, a):
        return self.net(torch.cat([s, a], dim=-1))


class Step(nn.Module):
    def __init__(self, gamma=0.98):
        super().__init__()
        self.actor, self.q1, self.q2 = Actor(), Critic(), Critic()
        self.q1_target, self.q2_target = Critic(), Critic()
        self.log_alpha = nn.Parameter(torch.tensor(-1.0))
        self.gamma, self.target_entropy = gamma, -2.0

    def forward(self, s, a, r, s2, done, eps, eps2):
        alpha = self.log_alpha.exp().detach()
        a2, logp2 = self.actor(s2, eps2)
        next_q = torch.min(self.q1_target(s2, a2), self.q2_target(s2, a2)) - alpha * logp2
        y = (r.unsqueeze(1) + self.gamma * (1.0 - done.unsqueeze(1)) * next_q).detach()
        critic_loss = F.mse_loss(self.q1(s, a), y) + F.mse_loss(self.q2(s, a), y)
        pi, logp = self.actor(s, eps)
        actor_loss = (alpha * logp - torch.min(self.q1(s, pi), self.q2(s, pi))).mean()
        alpha_loss = -(self.log_alpha * (logp + self.target_entropy).detach()).mean()
        return critic_loss, actor_loss, alpha_loss


def example():
    g = torch.Generator().manual_seed(1)
    r = lambda *s: torch.randn(*s, generator=g)
    done = torch.tensor([0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    return (r(7, 5), torch.tanh(r(7, 2)), r(7), r(7, 5), done, r(7, 2), r(7, 2))


OPEN = [{0: "batch"}] * 7
