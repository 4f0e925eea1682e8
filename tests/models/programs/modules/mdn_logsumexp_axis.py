"""Mixture density network, Gaussian mixture likelihood.
The log-sum-exp belongs over the K components; it is taken over the batch (dim 0), so the
"likelihood" sums over samples.  Fix: dim=1.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    def __init__(self, k=5):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 20), nn.Tanh())
        self.pi, self.mu, self.sigma = nn.Linear(20, k), nn.Linear(20, k), nn.Linear(20, k)

    def nll(self, joint):
        return -torch.logsumexp(joint, 0).mean()  # wrong: components live on axis 1, not 0

    def forward(self, x, y):
        h = self.body(x)
        log_pi = F.log_softmax(self.pi(h), dim=-1)
        sigma = F.softplus(self.sigma(h)) + 1e-4
        z = (y.unsqueeze(-1) - self.mu(h)) / sigma
        comp = -0.5 * z.square() - sigma.log() - 0.5 * math.log(2 * math.pi)
        return self.nll(log_pi + comp)  # fault: reduction-over-batch-axis


class Fixed(Step):
    def nll(self, joint):
        return -torch.logsumexp(joint, 1).mean()


def example():
    torch.manual_seed(8)
    return torch.randn(11, 3), torch.randn(11)
