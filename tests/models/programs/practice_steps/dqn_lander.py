"""DQN update with a target network for a small control task.

MISTAKE (silent): gather keeps the trailing axis, q_taken is [B, 1] while the TD target is [B]; the TD error
is [B, B]. The gathered value has to be squeezed.
"""
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F


class QNetwork(nn.Module):
    def __init__(self, obs_dim, n_actions, hidden=24):
        super().__init__()
        self.fc1 = nn.Linear(obs_dim, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, n_actions)

    def forward(self, obs):
        h = F.relu(self.fc1(obs))
        h = F.relu(self.fc2(h))
        return self.out(h)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.gamma = 0.99
        self.policy_net = QNetwork(4, 3)
        self.target_net = copy.deepcopy(self.policy_net)
        for p in self.target_net.parameters():
            p.requires_grad = False

    def forward(self, obs, action, reward, next_obs, done):
        q_taken = self.policy_net(obs).gather(1, action.unsqueeze(1))
        next_q = self.target_net(next_obs).max(dim=1)[0].detach()
        target = reward + self.gamma * next_q * (1.0 - done)
        td_error = q_taken - target  # fault: silent-broadcast-in-loss
        loss = torch.where(td_error.abs() < 1.0, 0.5 * td_error ** 2, td_error.abs() - 0.5)
        return loss.mean()


class Fixed(Step):
    def forward(self, obs, action, reward, next_obs, done):
        q_taken = self.policy_net(obs).gather(1, action.unsqueeze(1)).squeeze(1)
        next_q = self.target_net(next_obs).max(dim=1)[0].detach()
        target = reward + self.gamma * next_q * (1.0 - done)
        td_error = q_taken - target
        loss = torch.where(td_error.abs() < 1.0, 0.5 * td_error ** 2, td_error.abs() - 0.5)
        return loss.mean()


def example():
    g = torch.Generator().manual_seed(1)
    return (
        torch.randn(7, 4, generator=g),
        torch.randint(0, 3, (7,), generator=g),
        torch.rand(7, generator=g),
        torch.randn(7, 4, generator=g),
        torch.tensor([0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0]),
    )
