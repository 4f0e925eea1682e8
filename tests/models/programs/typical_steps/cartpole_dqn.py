"""DQN update with a target network on CartPole transitions.

MISTAKE (silent): the bootstrap term is multiplied with done instead of (1 - done).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class QNet(nn.Module):
    def __init__(self, obs=4, actions=2, hidden=32):
        super().__init__()
        self.fc1 = nn.Linear(obs, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.fc3 = nn.Linear(hidden, actions)

    def forward(self, s):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(s)))))


class Step(nn.Module):
    def __init__(self, gamma=0.99):
        super().__init__()
        self.policy_net = QNet()
        self.target_net = QNet()
        self.gamma = gamma

    def forward(self, state, action, reward, next_state, done):
        q = self.policy_net(state).gather(1, action.unsqueeze(1)).squeeze(1)
        next_q = self.target_net(next_state).max(dim=1)[0].detach()
        target = reward + self.gamma * next_q * done  # fault: episodes-never-end
        return F.smooth_l1_loss(q, target)


class Fixed(Step):
    def forward(self, state, action, reward, next_state, done):
        q = self.policy_net(state).gather(1, action.unsqueeze(1)).squeeze(1)
        next_q = self.target_net(next_state).max(dim=1)[0].detach()
        target = reward + self.gamma * next_q * (1 - done)
        return F.smooth_l1_loss(q, target)


def example():
    g = torch.Generator().manual_seed(1)
    return (
        torch.randn(7, 4, generator=g),
        torch.randint(0, 2, (7,), generator=g),
        torch.ones(7),
        torch.randn(7, 4, generator=g),
        torch.tensor([0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0]),
    )


OPEN = [{0: "batch"}] * 5
