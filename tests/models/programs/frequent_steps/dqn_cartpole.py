"""DQN update on a replay batch (CartPole).

MISTAKE (silent): bootstraps only on terminal states, must be (1 - done).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

GAMMA = 0.99


def make_q(obs_dim, n_actions):
    return nn.Sequential(nn.Linear(obs_dim, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, n_actions))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.policy_net = make_q(4, 2)
        self.target_net = make_q(4, 2)
        self.target_net.load_state_dict(self.policy_net.state_dict())

    def forward(self, state, action, reward, next_state, done):
        q_values = self.policy_net(state).gather(1, action.unsqueeze(1)).squeeze(1)
        next_q = self.target_net(next_state).max(1)[0].detach()
        expected = reward + GAMMA * next_q * done.float()  # fault: episodes-never-end
        return F.mse_loss(q_values, expected)


def example():
    g = torch.Generator().manual_seed(9)
    n = 16
    state = torch.randn(n, 4, generator=g)
    action = torch.randint(0, 2, (n,), generator=g)
    reward = torch.ones(n)
    next_state = torch.randn(n, 4, generator=g)
    done = torch.rand(n, generator=g) < 0.2
    return state, action, reward, next_state, done
