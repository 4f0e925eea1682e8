"""Mixture of four experts with a load-balancing term.

CORRECT: the hard share per expert (argmax, one-hot, mean over the tokens) carries no gradient by design; the soft share it is multiplied with does.
Both means are over the tokens, and the product sum is scaled by the number of experts.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    E = 4

    def __init__(self, d=10):
        super().__init__()
        self.gate = nn.Linear(d, self.E, bias=False)
        self.w = nn.Parameter(torch.randn(self.E, d, d) / d ** 0.5)
        self.out = nn.Linear(d, 1)

    def forward(self, x, y):
        p = self.gate(x).softmax(-1)
        first = p.argmax(-1)
        hot = F.one_hot(first, self.E).to(p.dtype)
        every = torch.einsum("nd,edf->nef", x, self.w)
        h = (every * (p * hot).unsqueeze(-1)).sum(1)
        balance = self.E * (hot.mean(0) * p.mean(0)).sum()
        return F.mse_loss(self.out(x + F.silu(h))[:, 0], y) + 0.01 * balance


def example():
    torch.manual_seed(113)
    return torch.randn(8, 10), torch.randn(8)


OPEN = [{0: "tokens"}, {0: "tokens"}]
