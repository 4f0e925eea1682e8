import math

import torch
import torch.nn.functional as F
from torch import nn


class SACActor(nn.Module):
    def __init__(self, s=6, a=2):
        super().__init__()
        self.body, self.mu, self.ls = nn.Linear(s, 32), nn.Linear(32, a), nn.Linear(32, a)
        self.q1, self.q2 = nn.Linear(s + a, 1), nn.Linear(s + a, 1)
        self.log_alpha = nn.Parameter(torch.tensor(-1.0))

    def forward(self, s, eps):
        h = F.relu(self.body(s))
        mu, ls = self.mu(h), self.ls(h).clamp(-20, 2)
        u = mu + ls.exp() * eps
        logp = (-0.5 * eps ** 2 - ls - 0.5 * math.log(2 * math.pi)).sum(1, keepdim=True)
        logp = logp - (2 * (math.log(2) - u - F.softplus(-2 * u))).sum(1, keepdim=True)
        sa = torch.cat([s, torch.tanh(u)], 1)
        q = torch.min(self.q1(sa), self.q2(sa))
        alpha = self.log_alpha.exp()
        return (alpha.detach() * logp - q).mean() - (self.log_alpha * (logp + 2.0).detach()).mean()


def example():
    return (torch.randn(8, 6), torch.randn(8, 2))


Step = SACActor
OPEN = [{0: "batch"}, {0: "batch"}]
