"""Trains a discrete gripper policy by PPO written as the maximum of two negated surrogates, with a clipped value loss and an entropy term."""
import torch
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(9, 24), nn.Tanh())
        self.logits = nn.Linear(24, 7)
        self.critic = nn.Linear(24, 1)
        self.clip = 0.1

    def forward(self, obs, act, old_logp, adv, ret, old_value):
        h = self.shared(obs)
        raw = self.logits(h)
        logp_all = raw - torch.logsumexp(raw, dim=1, keepdim=True)
        newlogp = torch.take_along_dim(logp_all, act.unsqueeze(1), dim=1).squeeze(1)
        ratio = (newlogp - old_logp).exp()
        pg1 = -adv * ratio
        pg2 = -adv * torch.clamp(ratio, 1 - self.clip, 1 + self.clip)
        pg_loss = torch.max(pg1, pg2).mean()
        value = self.critic(h).view(-1)
        v_clipped = old_value + torch.clamp(value - old_value, -self.clip, self.clip)
        v_loss = 0.5 * torch.max((value - ret) ** 2, (v_clipped - ret) ** 2).mean()
        neg_entropy = (logp_all.exp() * logp_all).sum(dim=1).mean()
        return pg_loss + 0.5 * v_loss + 0.01 * neg_entropy


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (
        torch.randn(30, 9), torch.randint(0, 7, (30,)), -1.9 + 0.2 * torch.randn(30),
        torch.randn(30), torch.randn(30), torch.randn(30),
    )
