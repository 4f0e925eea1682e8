"""Gae rollout.

MISTAKE (silent): v(t) and V(t+1) exchanged in the TD error.
"""
import torch
import torch.nn as nn


class ActorCritic(nn.Module):
    def __init__(self, obs=12, act=4):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs, 64), nn.ReLU())
        self.pi = nn.Linear(64, act)
        self.v = nn.Linear(64, 1)

    def forward(self, o):
        h = self.body(o)
        return self.pi(h), self.v(h).squeeze(-1)


class Step(nn.Module):
    """A2C with GAE over a rollout of T steps; obs holds T + 1 observations, time first."""

    def __init__(self, gamma=0.99, lam=0.95):
        super().__init__()
        self.ac = ActorCritic()
        self.gamma, self.lam = gamma, lam

    def forward(self, obs, act, rew, done):
        logits, values = self.ac(obs)
        v = values.detach()
        T = 10
        advs = []
        gae = torch.zeros_like(rew[0])
        for t in reversed(range(T)):
            nonterm = 1.0 - done[t]
            delta = rew[t] + self.gamma * v[t] * nonterm - v[t + 1]  # fault: rewards-so-far
            gae = delta + self.gamma * self.lam * nonterm * gae
            advs.insert(0, gae)
        adv = torch.stack(advs)
        ret = adv + v[:-1]
        logp = logits[:-1].log_softmax(-1)
        lp = logp.gather(-1, act.unsqueeze(-1)).squeeze(-1)
        pg = -(lp * adv).mean()
        ent = -(logp.exp() * logp).sum(-1).mean()
        vf = (values[:-1] - ret).pow(2).mean()
        return pg + 0.5 * vf - 0.01 * ent


def example():
    torch.manual_seed(0)
    return torch.randn(11, 16, 12), torch.randint(0, 4, (10, 16)), torch.rand(10, 16), (torch.rand(10, 16) < 0.05).float()
