"""PPO critic update with value clipping (CartPole sized)."""
import torch
from torch import nn


class Critic(nn.Module):
    def __init__(self, obs_dim=4, hidden=32, clip=0.2):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.v = nn.Linear(hidden, 1)
        self.clip = clip

    def forward(self, obs, returns, old_values):
        values = self.v(self.body(obs))  # fault: silent-broadcast-in-loss
        clipped = old_values + torch.clamp(values - old_values, -self.clip, self.clip)
        vf_loss1 = (values - returns).pow(2)  # fault: silent-broadcast-in-loss
        vf_loss2 = (clipped - returns).pow(2)
        return 0.5 * torch.max(vf_loss1, vf_loss2).mean()


def example():
    return (torch.randn(24, 4), torch.randn(24), torch.randn(24))


Step = Critic
OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]
