"""Cartpole ppo.

MISTAKE (silent): returns [N] minus values [N,1] gives an [N,N] advantage.
"""
from dataclasses import dataclass
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Cfg:
    obs: int = 8
    act: int = 4
    clip: float = 0.2
    vf: float = 0.5
    ent: float = 0.01


class Step(nn.Module):
    def __init__(self, cfg=Cfg()):
        super().__init__()
        self.cfg = cfg
        self.trunk = nn.Sequential(nn.Linear(cfg.obs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.pi = nn.Linear(64, cfg.act)
        self.v = nn.Linear(64, 1)

    def forward(self, obs, actions, old_logp, returns):
        h = self.trunk(obs)
        logp_all = F.log_softmax(self.pi(h), dim=-1)
        values = self.v(h)
        logp = logp_all.gather(1, actions[:, None]).squeeze(1)
        adv = returns - values.detach()  # fault: silent-broadcast-in-loss
        ratio = torch.exp(logp - old_logp)
        clipped = ratio.clamp(1 - self.cfg.clip, 1 + self.cfg.clip)
        pg = -torch.min(ratio * adv, clipped * adv).mean()
        v_loss = (values.squeeze(-1) - returns).pow(2).mean()
        entropy = -(logp_all.exp() * logp_all).sum(-1).mean()
        return pg + self.cfg.vf * v_loss - self.cfg.ent * entropy


def example():
    torch.manual_seed(0)
    n = 256
    return torch.randn(n, 8), torch.randint(0, 4, (n,)), -torch.rand(n) * 2, torch.randn(n)
