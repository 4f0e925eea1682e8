"""Trains a warehouse robot with advantage actor-critic. The critic's values are (N, 1) and the returns (N), so the advantage becomes (N, N); the values should be squeezed."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.shared = nn.Linear(12, 36)
        self.actor = nn.Linear(36, 5)
        self.critic = nn.Linear(36, 1)

    def forward(self, obs, actions, returns):
        h = F.relu(self.shared(obs))
        logp = F.log_softmax(self.actor(h), dim=-1)
        values = self.critic(h)
        taken = logp[torch.arange(actions.shape[0]), actions]
        advantage = returns - values  # fault: silent-broadcast-in-loss
        actor_loss = -(taken * advantage.detach()).mean()
        critic_loss = advantage.pow(2).mean()
        entropy = -(logp.exp() * logp).sum(-1).mean()
        return actor_loss + 0.5 * critic_loss - 0.01 * entropy


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(40, 12), torch.randint(0, 5, (40,)), torch.randn(40))
