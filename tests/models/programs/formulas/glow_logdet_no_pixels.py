"""Glow step: actnorm + invertible 1x1 convolution + prior likelihood.

The log-determinant of a 1x1 convolution counts once per pixel; actnorm's part is multiplied by H*W, the
part of the convolution is not.  Fix: h*w*sum(log_s).
"""
import math

import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    def __init__(self, c=4):
        super().__init__()
        self.logs = nn.Parameter(torch.zeros(1, c, 1, 1) + .1)
        self.bias = nn.Parameter(torch.zeros(1, c, 1, 1))
        self.low = nn.Parameter(torch.randn(c, c) * .2)
        self.up = nn.Parameter(torch.randn(c, c) * .2)
        self.log_s = nn.Parameter(torch.randn(c) * .1)
        self.register_buffer("l_mask", torch.tril(torch.ones(c, c), -1))

    def conv_logdet(self, h, w):
        return self.log_s.sum()  # fault: no-rule

    def forward(self, x):
        _b, c, h, w = x.shape
        y = (x + self.bias) * torch.exp(self.logs)
        ld = h * w * self.logs.sum()
        L = self.low * self.l_mask + torch.eye(c)
        U = self.up * self.l_mask.t() + torch.eye(c) * torch.exp(self.log_s)
        W = L @ U
        z = F.conv2d(y, W.view(c, c, 1, 1))
        ld = ld + self.conv_logdet(h, w)
        logp = -0.5 * (z ** 2 + math.log(2 * math.pi)).sum(dim=(1, 2, 3))
        return -(logp + ld).mean() / (c * h * w)


class Fixed(Step):
    def conv_logdet(self, h, w):
        return h * w * self.log_s.sum()


def example():
    torch.manual_seed(11)
    return (torch.randn(2, 4, 6, 6),)
