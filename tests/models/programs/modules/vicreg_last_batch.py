"""VICReg: invariance, variance, covariance.

The covariance is divided by B - 1 and the batch is open: a last batch of one sample divides by 0 (NaN loss,
poisoned weights).  Fix: max(B - 1, 1) (and drop_last).
"""
import torch
import torch.nn.functional as F
from torch import nn

OPEN = [{0: "batch"}, {0: "batch"}]


class Step(nn.Module):
    def __init__(self, d=10):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(18, 20), nn.ReLU(), nn.Linear(20, d))

    def denom(self, z):
        return torch.ones_like(z[:, 0]).sum() - 1.0

    def moments(self, z):
        c = z - z.mean(dim=0)
        cov = c.t().matmul(c) / self.denom(z)  # wrong: division by B-1, zero for a batch of one
        return cov

    def forward(self, a, b):
        za, zb = self.enc(a), self.enc(b)
        loss = 25.0 * F.mse_loss(za, zb)
        for z in (za, zb):
            cov = self.moments(z)  # fault: no-rule
            var = cov.diagonal()
            off = cov * (1.0 - torch.eye(cov.shape[0]))
            loss = loss + 25.0 * F.relu(1 - torch.sqrt(var + 1e-4)).mean() + off.pow(2).sum() / cov.shape[0]
        return loss


class Fixed(Step):
    def denom(self, z):
        return (torch.ones_like(z[:, 0]).sum() - 1.0).clamp(min=1.0)


def example():
    torch.manual_seed(40)
    return torch.randn(6, 18), torch.randn(6, 18)
