"""RMSprop step in the graph: the running second moment is fed with g and not with g*g.

It becomes negative for negative gradients, its square root is nan.  Fix: g.square().
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.theta = nn.Parameter(torch.linspace(-1, 1, 6))

    def second(self, sq, g):
        return 0.99 * sq + 0.01 * g

    def forward(self, feats, target, sq):
        pred = feats.matmul(self.theta)
        r = pred - target
        g = (feats * r.unsqueeze(1)).sum(0).mul(2.0 / feats.shape[0])
        sq_new = self.second(sq, g)
        upd = self.theta - 0.01 * g / (torch.sqrt(sq_new) + 1e-6)  # fault: misbuilt-gradient-step
        return r.pow(2).mean(), upd, sq_new


class Fixed(Step):
    def second(self, sq, g):
        return 0.99 * sq + 0.01 * g.square()


def example():
    torch.manual_seed(8)
    return torch.randn(7, 6), torch.randn(7), torch.zeros(6)
