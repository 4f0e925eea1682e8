"""Svm hinge.

CORRECT: boolean to {-1,+1} for the hinge.
"""
import torch
import torch.nn as nn


class RBFFeatures(nn.Module):
    def __init__(self, d_in=12, n_feat=60, gamma=0.3):
        super().__init__()
        self.register_buffer("w", torch.randn(d_in, n_feat) * (2 * gamma) ** 0.5)
        self.register_buffer("b", torch.rand(n_feat) * 6.2831853)

    def forward(self, x):
        return torch.cos(x @ self.w + self.b) * (2.0 / self.w.shape[1]) ** 0.5


class Step(nn.Module):
    """Linear SVM on random Fourier features; boolean labels."""

    def __init__(self, c=1e-3):
        super().__init__()
        self.phi = RBFFeatures()
        self.linear = nn.Linear(60, 1)
        self.c = c

    def forward(self, x, is_positive):
        margin_sign = is_positive.to(torch.float32) * 2 - 1
        score = self.linear(self.phi(x))[:, 0]
        hinge = torch.clamp(1 - margin_sign * score, min=0)
        err = ((score > 0) != is_positive).float().mean()
        return hinge.mean() + self.c * self.linear.weight.pow(2).sum(), err


def example():
    torch.manual_seed(0)
    return torch.randn(26, 12), torch.rand(26) < 0.5
