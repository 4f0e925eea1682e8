"""Deep ensemble nll.

CORRECT: ensemble mixture NLL: logsumexp over members - log M, nll_loss on log-probabilities.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Member(nn.Module):
    def __init__(self, d, c):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, 24), nn.ReLU(), nn.Linear(24, c))

    def forward(self, x):
        return F.log_softmax(self.net(x), dim=-1)


class Step(nn.Module):
    """Trains the *mixture* of the members: log p(y|x) = log mean_m p_m(y|x)."""

    def __init__(self, d=10, classes=6, members=4):
        super().__init__()
        self.members = nn.ModuleList([Member(d, classes) for _ in range(members)])

    def forward(self, x, y):
        logp = torch.stack([m(x) for m in self.members], dim=0)             # (M, B, C)
        mix = torch.logsumexp(logp, dim=0) - math.log(len(self.members))    # (B, C)
        loss = F.nll_loss(mix, y)
        p_bar = mix.exp()
        total = -(p_bar * mix).sum(-1)
        aleatoric = -(logp.exp() * logp).sum(-1).mean(0)
        return loss, (total - aleatoric).mean()


def example():
    torch.manual_seed(20)
    return torch.randn(7, 10), torch.randint(0, 6, (7,))
