"""One DQN update on a replay batch: Q(s, a) is pulled towards r + gamma * max Q_target(s').

MISTAKE (silent): gather leaves q_sa as [B, 1] while the target is [B], so the TD error broadcasts to [B, B] and every state
is pulled towards every target; squeeze q_sa (or unsqueeze the target).
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 3))
        self.target_net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 3))
        self.gamma = 0.99

    def forward(self, state, action, reward, next_state, done):
        q_sa = self.q_net(state).gather(1, action.unsqueeze(1))
        with torch.no_grad():
            next_q = self.target_net(next_state).max(1)[0]
            target = reward + self.gamma * next_q * (1 - done)
        td = q_sa - target  # fault: silent-broadcast-in-loss
        return (td ** 2).mean()


class Fixed(Step):
    def forward(self, state, action, reward, next_state, done):
        q_sa = self.q_net(state).gather(1, action.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            next_q = self.target_net(next_state).max(1)[0]
            target = reward + self.gamma * next_q * (1 - done)
        td = q_sa - target
        return (td ** 2).mean()


def example():
    g = torch.Generator().manual_seed(1)
    B = 6
    return (torch.randn(B, 4, generator=g), torch.randint(0, 3, (B,), generator=g), torch.randn(B, generator=g),
            torch.randn(B, 4, generator=g), (torch.rand(B, generator=g) < 0.3).float())


OPEN = [{0: "batch"}] * 5
