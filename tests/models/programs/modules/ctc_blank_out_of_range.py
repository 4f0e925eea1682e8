"""CTC alignment loss by hand: emissions gathered for the blank-extended label sequence.

blank = number of characters, but the output layer has only that many units (no unit for
the blank): the gather is out of range at each even position.  Fix: V + 1 outputs.
"""
import torch
from torch import nn


class Step(nn.Module):
    V = 12
    units = 12

    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(7, 20)
        self.out = nn.Linear(20, self.units)

    def extended(self, y):
        blank = torch.full_like(y, self.V)
        ext = torch.stack([blank, y], dim=2).flatten(1)
        return torch.cat([ext, torch.full_like(y[:, :1], self.V)], dim=1)

    def forward(self, x, y):
        logp = self.out(torch.tanh(self.enc(x))).log_softmax(-1)
        ext = self.extended(y)
        T = x.shape[1]
        emit = logp.gather(2, ext.unsqueeze(1).expand(-1, T, -1))  # fault: index-out-of-range
        neg = torch.full_like(emit[:, 0, :1], -1e5)
        alpha = torch.cat([emit[:, 0, :2], neg.expand(-1, ext.shape[1] - 2)], 1)
        for t in range(1, T):
            stay = alpha
            step1 = torch.cat([neg, alpha[:, :-1]], 1)
            alpha = torch.logsumexp(torch.stack([stay, step1]), 0) + emit[:, t]
        return -torch.logsumexp(alpha[:, -2:], 1).mean()


class Fixed(Step):
    units = 13


def example():
    torch.manual_seed(44)
    return torch.randn(2, 9, 7), torch.randint(0, 12, (2, 3))
