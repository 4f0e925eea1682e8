"""Half-precision attention with an additive padding mask.

-1e9 does not fit in float16 and becomes -inf; (1 - mask) * -inf is 0 * inf = NaN on every *kept*
position, the whole row is NaN.  Fix: use -1e4 (or finfo.min).
"""
import torch
from torch import nn

OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]


class Step(nn.Module):
    def __init__(self, d=8):
        super().__init__()
        self.q = nn.Parameter(torch.randn(d) * 0.3)
        self.w = nn.Linear(d, d)
        self.o = nn.Linear(d, 1)

    def bias(self, mask):
        big = torch.full((1, 1), -1e9).to(torch.float16)
        return (1.0 - mask.half()) * big  # wrong: -1e9 is -inf in half, 0 * -inf is NaN

    def forward(self, x, mask, y):
        k = self.w(x)
        s = (k * self.q).sum(-1).half()
        a = torch.softmax((s + self.bias(mask)).float(), -1)  # fault: overflow-in-cast
        pooled = (a.unsqueeze(-1) * x).sum(1)
        return nn.functional.mse_loss(self.o(pooled)[:, 0], y)


class Fixed(Step):
    def bias(self, mask):
        big = torch.full((1, 1), -1e4).to(torch.float16)
        return (1.0 - mask.half()) * big


def example():
    torch.manual_seed(27)
    m = torch.ones(3, 7)
    m[1, 5:] = 0
    return torch.randn(3, 7, 8), m, torch.randn(3)
