"""Match orders with vehicles by an entropic transport plan.

CORRECT: logsumexp alternates between the two axes on purpose; the plan is doubly stochastic in the limit. The loss uses the log plan, no log of zero.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.o = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 8))
        self.v = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 8))

    def forward(self, orders, vehicles, match):
        log_p = torch.einsum("bid,bjd->bij", self.o(orders), self.v(vehicles)) / 0.3
        for _ in range(4):
            log_p = log_p - log_p.logsumexp(2, keepdim=True)
            log_p = log_p - log_p.logsumexp(1, keepdim=True)
        picked = log_p.gather(2, match[..., None]).squeeze(2)
        return -picked.mean()


def example():
    torch.manual_seed(93)
    return torch.randn(3, 6, 5), torch.randn(3, 6, 4), torch.stack([torch.randperm(6) for _ in range(3)])
