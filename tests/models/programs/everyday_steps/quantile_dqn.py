"""Quantile dqn.

CORRECT: every target quantile against every predicted quantile is intended.
"""
import torch
import torch.nn as nn


class QNet(nn.Module):
    def __init__(self, obs=8, act=4, n_q=25):
        super().__init__()
        self.act, self.n_q = act, n_q
        self.net = nn.Sequential(nn.Linear(obs, 64), nn.ReLU(), nn.Linear(64, act * n_q))

    def forward(self, s):
        return self.net(s).view(-1, self.act, self.n_q)


class Step(nn.Module):
    def __init__(self, n_q=25, gamma=0.99):
        super().__init__()
        self.online, self.frozen = QNet(n_q=n_q), QNet(n_q=n_q)
        self.register_buffer("tau", (torch.arange(n_q) + 0.5) / n_q)
        self.gamma = gamma

    def forward(self, s, a, r, s2, done):
        rows = torch.arange(s.shape[0])
        theta = self.online(s)[rows, a]
        with torch.no_grad():
            nxt = self.frozen(s2)
            best = nxt.mean(-1).argmax(-1)
            target = r[:, None] + self.gamma * (1 - done)[:, None] * nxt[rows, best]
        u = target[:, None, :] - theta[:, :, None]
        huber = torch.where(u.abs() <= 1.0, 0.5 * u.pow(2), u.abs() - 0.5)
        w = (self.tau[None, :, None] - (u.detach() < 0).float()).abs()
        return (w * huber).mean(dim=2).sum(dim=1).mean()


def example():
    torch.manual_seed(0)
    n = 64
    return (torch.randn(n, 8), torch.randint(0, 4, (n,)), torch.randn(n), torch.randn(n, 8), (torch.rand(n) < 0.1).float())
