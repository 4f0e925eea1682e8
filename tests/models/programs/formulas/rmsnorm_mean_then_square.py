"""RMSNorm in a small language model: the square is taken of the mean instead of the mean of the squares.

For features centred at zero the divisor is almost sqrt(eps).  Fix: x.pow(2).mean(-1).
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, v=19, d=12):
        super().__init__()
        self.e = nn.Embedding(v, d)
        self.g = nn.Parameter(torch.ones(d))
        self.up = nn.Linear(d, 2 * d, bias=False)
        self.down = nn.Linear(2 * d, d, bias=False)

    def rms(self, x):
        ms = x.mean(-1, keepdim=True).pow(2)
        return x * torch.rsqrt(ms + 1e-6) * self.g

    def forward(self, tok):
        x = self.e(tok)
        x = x + self.down(nn.functional.silu(self.up(self.rms(x))))  # fault: normalised-otherwise
        logits = self.rms(x) @ self.e.weight.t()  # fault: normalised-otherwise
        return nn.functional.cross_entropy(logits[:, :-1].reshape(-1, logits.size(-1)), tok[:, 1:].reshape(-1))


class Fixed(Step):
    def rms(self, x):
        ms = x.pow(2).mean(-1, keepdim=True)
        return x * torch.rsqrt(ms + 1e-6) * self.g


def example():
    torch.manual_seed(38)
    return (torch.randint(0, 19, (2, 7)),)
