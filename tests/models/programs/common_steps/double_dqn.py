"""Double dqn.

MISTAKE (silent): DQN target multiplied by done rather than 1 - done.
"""
import torch
from torch import nn
import torch.nn.functional as F


class QNet(nn.Module):
    def __init__(self, n_obs, n_act):
        super().__init__()
        self.l1 = nn.Linear(n_obs, 64)
        self.l2 = nn.Linear(64, 64)
        self.l3 = nn.Linear(64, n_act)

    def forward(self, s):
        return self.l3(F.relu(self.l2(F.relu(self.l1(s)))))


class Step(nn.Module):
    """Double DQN on CartPole-like replay samples."""

    def __init__(self, gamma=0.99):
        super().__init__()
        self.policy_net = QNet(4, 3)
        self.target_net = QNet(4, 3)
        self.target_net.load_state_dict(self.policy_net.state_dict())
        self.gamma = gamma

    def forward(self, state, action, reward, next_state, done):
        q = self.policy_net(state).gather(1, action.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            best = self.policy_net(next_state).argmax(dim=1, keepdim=True)
            q_next = self.target_net(next_state).gather(1, best).squeeze(1)
        target = reward + self.gamma * q_next * done.float()  # fault: episodes-never-end
        return F.mse_loss(q, target)


def example():
    torch.manual_seed(17)
    n = 9
    return (torch.randn(n, 4), torch.randint(0, 3, (n,)), torch.ones(n),
            torch.randn(n, 4), torch.rand(n) < 0.2)
