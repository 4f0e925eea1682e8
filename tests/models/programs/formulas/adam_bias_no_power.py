"""One Adam update written out (weights, moments and the step number are inputs).

The bias correction divides by 1 - b1*t and 1 - b2*t; it has to be 1 - b1**t and 1 - b2**t (for t = 2 the
first is already negative).  Fix: power instead of product.
"""
import torch
from torch import Tensor, nn


class Step(nn.Module):
    lr, b1, b2, eps = 1e-3, 0.9, 0.999, 1e-6

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 3) * 0.1)

    def correct(self, m: Tensor, v: Tensor, t: Tensor):
        return m / (1 - self.b1 * t), v / (1 - self.b2 ** t)

    def forward(self, x: Tensor, y: Tensor, m: Tensor, v: Tensor, t: Tensor):
        err = x @ self.w - y
        g = 2 * x.t() @ err / err.numel()
        m = self.b1 * m + (1 - self.b1) * g
        v = self.b2 * v + (1 - self.b2) * g * g
        mh, vh = self.correct(m, v, t)  # fault: misbuilt-gradient-step
        w = self.w - self.lr * mh / (vh.sqrt() + self.eps)
        return (err ** 2).mean(), w, m, v, t + 1


class Fixed(Step):
    def correct(self, m, v, t):
        return m / (1 - self.b1 ** t), v / (1 - self.b2 ** t)


def example():
    torch.manual_seed(7)
    return torch.randn(5, 4), torch.randn(5, 3), torch.zeros(4, 3), torch.zeros(4, 3), torch.tensor(3.0)
