"""Qr dqn.

CORRECT: QR-DQN pairwise quantile Huber with intended (B,N,N) broadcasting.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class QuantileNet(nn.Module):
    def __init__(self, obs, act, n_q):
        super().__init__()
        self.act, self.n_q = act, n_q
        self.net = nn.Sequential(nn.Linear(obs, 48), nn.ReLU(), nn.Linear(48, act * n_q))

    def forward(self, s):
        return self.net(s).view(-1, self.act, self.n_q)


class Step(nn.Module):
    """Quantile-regression DQN; all pairs of predicted and target quantiles are compared."""

    def __init__(self, obs=6, act=3, n_q=11, gamma=0.98):
        super().__init__()
        self.online, self.target = QuantileNet(obs, act, n_q), QuantileNet(obs, act, n_q)
        self.gamma = gamma
        self.register_buffer("tau", (torch.arange(n_q) + 0.5) / n_q)

    @staticmethod
    def pick(q, a):
        return q.gather(1, a.view(-1, 1, 1).expand(-1, 1, q.size(2))).squeeze(1)

    def forward(self, s, a, r, s2, terminal):
        theta = self.pick(self.online(s), a)                                 # (B, N)
        with torch.no_grad():
            q2 = self.target(s2)
            theta2 = self.pick(q2, q2.mean(dim=2).argmax(dim=1))
            y = r[:, None] + self.gamma * (~terminal)[:, None] * theta2      # (B, N')
        u = y.unsqueeze(1) - theta.unsqueeze(2)                              # (B, N, N')
        huber = F.huber_loss(y.unsqueeze(1).expand_as(u), theta.unsqueeze(2).expand_as(u), reduction="none")
        weight = (self.tau.view(1, -1, 1) - (u.detach() < 0).float()).abs()
        return (weight * huber).mean(dim=2).sum(dim=1).mean()


def example():
    torch.manual_seed(53)
    b = 7
    return (torch.randn(b, 6), torch.randint(0, 3, (b,)), torch.randn(b), torch.randn(b, 6), torch.rand(b) < 0.2)
