"""Value bins.

CORRECT: integer bin index, the fraction is kept in w_hi.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    """Value as a categorical over bins with two-hot targets (DreamerV3 / MuZero)."""

    def __init__(self, obs=14, n_bins=41, vmax=20.0):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs, 64), nn.LayerNorm(64), nn.SiLU(), nn.Linear(64, n_bins))
        self.n_bins, self.vmax = n_bins, vmax

    def forward(self, obs, ret):
        logits = self.net(obs)
        y = torch.sign(ret) * torch.log1p(ret.abs())
        x = (y.clamp(-self.vmax, self.vmax) + self.vmax) / (2 * self.vmax) * (self.n_bins - 1)
        lo = x.floor().long().clamp(0, self.n_bins - 2)
        w_hi = x - lo.float()
        one = F.one_hot(lo, self.n_bins).float()
        two = F.one_hot(lo + 1, self.n_bins).float()
        target = one * (1 - w_hi).unsqueeze(-1) + two * w_hi.unsqueeze(-1)
        return -(target * F.log_softmax(logits, dim=-1)).sum(-1).mean()


def example():
    torch.manual_seed(0)
    return torch.randn(72, 14), torch.randn(72) * 10
