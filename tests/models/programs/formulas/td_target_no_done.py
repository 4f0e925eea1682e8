"""DQN target: the terminal flag is an input but is never used in the bootstrap.

y = r + gamma*max Q(s') also at the end of an episode.  Fix: times (1 - done).
"""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 3))
        self.tq = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 3)).requires_grad_(False)

    def target(self, r, s2, done):
        return r + 0.99 * self.tq(s2).max(1).values

    def forward(self, s, a, r, s2, done):
        qa = self.q(s).gather(1, a[:, None]).squeeze(1)
        return F.mse_loss(qa, self.target(r, s2, done).detach())  # fault: episodes-never-end


class Fixed(Step):
    def target(self, r, s2, done):
        return r + 0.99 * (1 - done) * self.tq(s2).max(1).values


def example():
    torch.manual_seed(17)
    return torch.randn(6, 4), torch.randint(0, 3, (6,)), torch.randn(6), torch.randn(6, 4), torch.tensor([0., 0, 1, 0, 1, 0])
