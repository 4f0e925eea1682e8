"""Episodic pg.

CORRECT: reversed cumulative sum is the discounted reward to go.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    """Policy gradient with reward to go and a learned baseline; tensors are [episodes, steps]."""

    def __init__(self, obs=5, act=3, gamma=0.97, T=30):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(obs, 48), nn.Tanh(), nn.Linear(48, act))
        self.v = nn.Sequential(nn.Linear(obs, 48), nn.Tanh(), nn.Linear(48, 1))
        self.register_buffer("disc", gamma ** torch.arange(T, dtype=torch.float32))

    def forward(self, obs, act, rew, mask):
        logp = F.log_softmax(self.pi(obs), -1)
        lp = torch.gather(logp, 2, act[..., None])[..., 0]
        dr = rew * mask * self.disc
        ret = dr.flip(1).cumsum(1).flip(1) / self.disc
        base = self.v(obs)[..., 0]
        adv = (ret - base).detach()
        n = mask.sum()
        pg = -(lp * adv * mask).sum() / n
        vf = ((base - ret).square() * mask).sum() / n
        return pg + 0.5 * vf


def example():
    torch.manual_seed(0)
    b, t = 14, 30
    mask = (torch.arange(t)[None] < torch.randint(6, t + 1, (b, 1))).float()
    return torch.randn(b, t, 5), torch.randint(0, 3, (b, t)), torch.rand(b, t), mask
