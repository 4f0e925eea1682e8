"""Advantage actor-critic loss over a flattened rollout.

CORRECT: unusual, and as it is meant.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class ActorCritic(nn.Module):
    def __init__(self, obs_dim, n_actions, hidden=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh())
        self.pi = nn.Linear(hidden, n_actions)
        self.v = nn.Linear(hidden, 1)

    def forward(self, obs):
        h = self.body(obs)
        return self.pi(h), self.v(h).squeeze(-1)


class Step(nn.Module):
    def __init__(self, ent_coef=0.01, vf_coef=0.5):
        super().__init__()
        self.net = ActorCritic(6, 4)
        self.ent_coef, self.vf_coef = ent_coef, vf_coef

    def forward(self, obs, actions, returns):
        logits, values = self.net(obs)
        logp_all = F.log_softmax(logits, dim=-1)
        logp = logp_all.gather(-1, actions[:, None])[:, 0]
        advantages = returns - values.detach()
        pg_loss = (-logp * advantages).mean()
        v_loss = (values - returns).pow(2).mean()
        negative_entropy = (logp_all.exp() * logp_all).sum(-1).mean()
        return pg_loss + self.vf_coef * v_loss + self.ent_coef * negative_entropy


def example():
    g = torch.Generator().manual_seed(14)
    n = 20
    return (torch.randn(n, 6, generator=g), torch.randint(0, 4, (n,), generator=g),
            torch.randn(n, generator=g) * 3)
