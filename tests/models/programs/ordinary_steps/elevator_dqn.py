"""Trains a deep Q network that dispatches an elevator. The gathered Q value keeps shape (B, 1) while the target has (B,), so the loss compares every state with every target; the gathered value should be squeezed."""
import torch
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, obs=10, actions=5, gamma=0.98):
        super().__init__()
        self.gamma = gamma
        self.online = nn.Sequential(nn.Linear(obs, 36), nn.ReLU(), nn.Linear(36, actions))
        self.target = nn.Sequential(nn.Linear(obs, 36), nn.ReLU(), nn.Linear(36, actions))

    def forward(self, state, action, reward, next_state, done):
        q = self.online(state).gather(1, action.unsqueeze(1))  # fault: silent-broadcast-in-loss
        next_q = self.target(next_state).max(1)[0].detach()
        expected = reward + self.gamma * next_q * (1 - done)
        td = q - expected  # fault: silent-broadcast-in-loss
        return td.pow(2).mul(0.5).mean()


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (
        torch.randn(32, 10),
        torch.randint(0, 5, (32,)),
        torch.randn(32),
        torch.randn(32, 10),
        (torch.rand(32) < 0.1).float(),
    )
