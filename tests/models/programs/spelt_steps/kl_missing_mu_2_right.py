"""KL missing mu^2.

CORRECT: the same as it is meant.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Linear(8, 6); self.d = nn.Linear(3, 8)

    def forward(self, x, eps):
        mu, logvar = self.e(x).chunk(2, dim=1)
        z = mu + eps * torch.exp(0.5 * logvar)
        kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        return F.mse_loss(self.d(z), x, reduction="sum") + kl


def example():
    torch.manual_seed(0)
    return (torch.randn(5, 8), torch.randn(5, 3),)
