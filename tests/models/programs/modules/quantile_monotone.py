"""Distributional RL (QR-DQN): pairwise quantile Huber loss.  (B, N, 1) - (B, 1, N) is intended; mean over
target quantiles, sum over predicted ones; the indicator is detached.
"""
import torch
from torch import nn

OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]


class Step(nn.Module):
    N, A = 8, 3

    def __init__(self):
        super().__init__()
        self.z = nn.Linear(6, self.N * self.A)
        self.register_buffer("tau", (torch.arange(self.N) + 0.5) / self.N)

    def forward(self, s, a, target_z):
        z = self.z(s).view(-1, self.A, self.N)
        za = z.gather(1, a.view(-1, 1, 1).expand(-1, 1, self.N)).squeeze(1)
        u = target_z.unsqueeze(1) - za.unsqueeze(2)
        huber = torch.where(u.abs() <= 1.0, 0.5 * u.pow(2), u.abs() - 0.5)
        weight = (self.tau.view(1, -1, 1) - (u.detach() < 0).float()).abs()
        return (weight * huber).mean(2).sum(1).mean()


def example():
    torch.manual_seed(67)
    return torch.randn(5, 6), torch.randint(0, 3, (5,)), torch.randn(5, 8)
