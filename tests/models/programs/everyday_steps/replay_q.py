"""Replay q.

MISTAKE (silent): [N,1] - [N] broadcasts to [N,N].
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


def mlp(i, o, h=128):
    return nn.Sequential(nn.Linear(i, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, o))


class Step(nn.Module):
    def __init__(self, obs_dim=10, n_act=5, gamma=0.99):
        super().__init__()
        self.q = mlp(obs_dim, n_act)
        self.q_target = mlp(obs_dim, n_act)
        self.q_target.load_state_dict(self.q.state_dict())
        for p in self.q_target.parameters():
            p.requires_grad_(False)
        self.gamma = gamma

    def forward(self, s, a, r, s2, done):
        q_sa = self.q(s).gather(1, a.unsqueeze(1))
        with torch.no_grad():
            best = self.q(s2).argmax(dim=1, keepdim=True)
            q_next = self.q_target(s2).gather(1, best).squeeze(1)
            y = r + self.gamma * (1.0 - done) * q_next
        td = q_sa - y  # fault: silent-broadcast-in-loss
        loss = torch.where(td.abs() < 1.0, 0.5 * td * td, td.abs() - 0.5).mean()
        return loss


def example():
    torch.manual_seed(0)
    n = 128
    return (torch.randn(n, 10), torch.randint(0, 5, (n,)), torch.randn(n), torch.randn(n, 10),
            (torch.rand(n) < 0.1).float())
