"""Trains a mixture density network of grasp angles. The mixture weight is added to the log densities as a probability; its logarithm (log_softmax) should be."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, k=5):
        super().__init__()
        self.hidden = nn.Linear(14, 32)
        self.z_pi = nn.Linear(32, k)
        self.z_mu = nn.Linear(32, k)
        self.z_sigma = nn.Linear(32, k)

    def forward(self, scene, angle):
        h = torch.tanh(self.hidden(scene))
        pi = F.softmax(self.z_pi(h), dim=1)
        mu = self.z_mu(h)
        sigma = F.softplus(self.z_sigma(h)) + 1e-3
        d = (angle.view(-1, 1) - mu) / sigma
        log_n = -0.5 * d ** 2 - torch.log(sigma) - 0.5 * math.log(2 * math.pi)
        log_lik = torch.logsumexp(pi + log_n, dim=1)  # fault: probabilities-as-logarithms
        return -log_lik.mean()


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(22, 14), torch.randn(22))
