"""A2c update.

MISTAKE (silent): logp_a is [N], advantage is [N,1]: product is [N,N].
"""
from dataclasses import dataclass
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class A2CConfig:
    obs_dim: int = 17
    n_actions: int = 5
    hidden: int = 64
    value_coef: float = 0.5
    entropy_coef: float = 0.01


class ActorCritic(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(c.obs_dim, c.hidden), nn.Tanh(), nn.Linear(c.hidden, c.hidden), nn.Tanh())
        self.pi = nn.Linear(c.hidden, c.n_actions)
        self.v = nn.Linear(c.hidden, 1)

    def forward(self, obs):
        h = self.body(obs)
        return self.pi(h), self.v(h)


class Step(nn.Module):
    def __init__(self, cfg=A2CConfig()):
        super().__init__()
        self.cfg = cfg
        self.ac = ActorCritic(cfg)

    def forward(self, obs, actions, returns):
        logits, values = self.ac(obs)
        log_probs = F.log_softmax(logits, dim=-1)
        logp_a = log_probs.gather(1, actions.unsqueeze(1)).squeeze(1)
        advantage = returns.unsqueeze(1) - values
        policy_loss = -(logp_a * advantage.detach()).mean()  # fault: silent-broadcast-in-loss
        value_loss = advantage.pow(2).mean()
        entropy = -(log_probs.exp() * log_probs).sum(-1).mean()
        return policy_loss + self.cfg.value_coef * value_loss - self.cfg.entropy_coef * entropy


def example():
    torch.manual_seed(0)
    return torch.randn(28, 17), torch.randint(0, 5, (28,)), torch.randn(28)
