"""Supervised contrastive loss: all other items of the same category in the batch are positives.

CORRECT: the diagonal is taken out of the denominator by -1e9 (its exp is 0) and out of the positives by the mask; the log-probability there is finite,
so 0 * -1e9 is 0 and no NaN; rows with no positive divide by 1.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, d=14, z=6, tau=0.1):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(d, 24), nn.ReLU(), nn.Linear(24, z))
        self.tau = tau

    def forward(self, x, category):
        z = nn.functional.normalize(self.f(x), dim=-1)
        eye = torch.eye(x.shape[0], dtype=torch.bool)
        sim = (z @ z.T / self.tau).masked_fill(eye, -1e9)
        logp = sim - sim.logsumexp(dim=1, keepdim=True)
        pos = (category[:, None] == category[None, :]) & ~eye
        per_row = -(logp * pos).sum(1) / pos.sum(1).clamp(min=1)
        return per_row.mean()


def example():
    torch.manual_seed(106)
    return torch.randn(6, 14), torch.tensor([0, 1, 0, 2, 1, 3])
