"""Trains a grid world policy with REINFORCE on rewards-to-go, computed with a triangular discount matrix, and a mean baseline."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, gamma=0.95):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 20), nn.Tanh(), nn.Linear(20, 4))
        self.gamma = gamma

    def rewards_to_go(self, rewards):
        t = torch.arange(rewards.shape[1], dtype=rewards.dtype)
        lag = t[:, None] - t[None, :]
        weights = torch.tril(self.gamma ** lag.clamp(min=0))
        return rewards @ weights

    def forward(self, obs, actions, rewards, alive):
        alive = alive.float()
        togo = self.rewards_to_go(rewards * alive)
        baseline = (togo * alive).sum(0) / alive.sum(0).clamp(min=1)
        adv = (togo - baseline) * alive
        logp = self.net(obs).log_softmax(-1).gather(-1, actions[..., None])[..., 0]
        return -(logp * adv).sum() / alive.sum()


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    alive = torch.arange(15)[None] < torch.tensor([15, 9, 12, 5, 14])[:, None]
    return (torch.randn(5, 15, 6), torch.randint(0, 4, (5, 15)), torch.rand(5, 15), alive)
