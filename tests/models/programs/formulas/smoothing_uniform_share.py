"""Label smoothing with eps/V everywhere and (1-eps) on top for the class: rows sum to one."""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, V=12, eps=0.1):
        super().__init__()
        self.l = nn.Linear(6, V)
        self.V, self.eps = V, eps

    def forward(self, x, y):
        lp = self.l(x).log_softmax(-1)
        q = nn.functional.one_hot(y, self.V) * (1 - self.eps) + self.eps / self.V
        return -(q * lp).sum(1).mean()


def example():
    torch.manual_seed(65)
    return torch.randn(5, 6), torch.randint(0, 12, (5,))
