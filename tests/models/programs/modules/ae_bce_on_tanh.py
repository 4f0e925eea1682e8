"""Denoising autoencoder with a hand-written Bernoulli loss.

The decoder ends in tanh, (-1, 1), and the loss takes the logarithm: half of the pixels give
log of a negative number, the loss is NaN from the first step.  Fix: sigmoid output.
"""
import torch
from torch import nn


class Step(nn.Module):
    out = staticmethod(torch.tanh)

    def __init__(self):
        super().__init__()
        self.down = nn.Conv1d(2, 8, 5, stride=2, padding=2)
        self.up = nn.ConvTranspose1d(8, 2, 4, stride=2, padding=1)

    def forward(self, noisy, clean):
        p = self.out(self.up(torch.relu(self.down(noisy))))
        nll = -(clean * torch.log(p) + (1 - clean) * torch.log(1 - p))  # fault: probability-out-of-range
        return nll.sum(dim=(1, 2)).mean()


class Fixed(Step):
    @staticmethod
    def out(v):
        return torch.sigmoid(v).clamp(1e-6, 1 - 1e-6)


def example():
    torch.manual_seed(10)
    c = (torch.rand(3, 2, 32) > 0.5).float()
    return c + 0.1 * torch.randn_like(c), c
