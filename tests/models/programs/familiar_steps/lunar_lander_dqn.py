"""Trains the Q network of a lunar lander DQN. The bootstrapped value isn't multiplied by (1 - done), so episodes never end; it should be."""
import torch
import torch.nn.functional as F
from torch import nn


def q_net():
    return nn.Sequential(nn.Linear(8, 40), nn.ReLU(), nn.Linear(40, 4))


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, gamma=0.99):
        super().__init__()
        self.online = q_net()
        self.target = q_net()
        self.target.load_state_dict(self.online.state_dict())
        self.gamma = gamma

    def forward(self, state, action, reward, next_state, done):
        q = self.online(state).gather(1, action.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            best_next = self.target(next_state).max(dim=1)[0]
            backup = reward + self.gamma * best_next  # fault: episodes-never-end
        return F.smooth_l1_loss(q, backup)  # fault: episodes-never-end


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(32, 8), torch.randint(0, 4, (32,)), torch.randn(32), torch.randn(32, 8),
            (torch.rand(32) < 0.2).float())
