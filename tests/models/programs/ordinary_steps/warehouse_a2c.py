"""Trains an actor-critic agent that picks the next shelf in a warehouse. The entropy bonus is added to the loss, so entropy is minimised; it should be subtracted."""
import torch
import torch.nn.functional as F
from torch import nn


class ActorCritic(nn.Module):
    def __init__(self, obs, acts):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(obs, 40), nn.ReLU())
        self.pi = nn.Linear(40, acts)
        self.v = nn.Linear(40, 1)

    def forward(self, x):
        x = self.trunk(x)
        return self.pi(x), self.v(x).squeeze(-1)


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.ac = ActorCritic(16, 6)

    def forward(self, obs, actions, returns):
        logits, value = self.ac(obs)
        logp = F.log_softmax(logits, dim=-1)
        chosen = logp.gather(-1, actions[:, None])[:, 0]
        adv = (returns - value).detach()
        policy_loss = -(chosen * adv).mean()
        value_loss = F.smooth_l1_loss(value, returns)
        entropy = -(logp.exp() * logp).sum(-1).mean()  # fault: entropy-lowered
        return policy_loss + 0.5 * value_loss + 0.01 * entropy  # fault: entropy-lowered


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(25, 16), torch.randint(0, 6, (25,)), torch.randn(25))
