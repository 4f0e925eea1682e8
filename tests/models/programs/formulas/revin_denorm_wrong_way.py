"""Long-term forecasting with reversible instance normalisation; the output is normalised a second time.

The forecast in normalised units must be mapped back with y*std + mean, but (y - mean)/std is applied.
Fix: y * std + mean.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, L=16, H=4):
        super().__init__()
        self.lin = nn.Linear(L, H)

    def denorm(self, y, mean, std):
        return (y - mean) / std

    def forward(self, hist, future):
        mean = hist.mean(1, keepdim=True)
        std = torch.sqrt(hist.var(1, keepdim=True, unbiased=False) + 1e-5)
        z = (hist - mean) / std
        y = self.lin(z.transpose(1, 2)).transpose(1, 2)
        return torch.mean((self.denorm(y, mean, std) - future).abs())  # fault: same-statistics-twice


class Fixed(Step):
    def denorm(self, y, mean, std):
        return y * std + mean


def example():
    torch.manual_seed(28)
    return torch.randn(3, 16, 2) * 4 + 7, torch.randn(3, 4, 2) * 4 + 7
