"""Insurance-claim counts with a zero-inflated Poisson likelihood.

CORRECT: y == 0 has log(pi + (1 - pi) exp(-lam)), a logaddexp of log pi and log(1-pi) - lam; for y > 0 the constant log y! is left out. The unused branch
of torch.where is finite.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, n=9):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n, 24), nn.ReLU())
        self.gate, self.log_rate = nn.Linear(24, 1), nn.Linear(24, 1)

    def forward(self, x, exposure, claims):
        h = self.body(x)
        g = self.gate(h).squeeze(1)
        log_lam = self.log_rate(h).squeeze(1).clamp(max=8.0) + exposure.clamp(min=1e-4).log()
        lam = log_lam.exp()
        log_pi, log_1pi = F.logsigmoid(g), F.logsigmoid(-g)
        zero = torch.logsumexp(torch.stack([log_pi, log_1pi - lam]), dim=0)
        positive = log_1pi + claims * log_lam - lam
        return -torch.where(claims == 0, zero, positive).mean()


def example():
    torch.manual_seed(110)
    return torch.randn(8, 9), 0.1 + torch.rand(8), torch.tensor([0., 0., 1., 0., 3., 0., 2., 0.])


OPEN = [{0: "policies"}, {0: "policies"}, {0: "policies"}]
