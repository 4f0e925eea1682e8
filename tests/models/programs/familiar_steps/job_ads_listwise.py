"""Trains a job advertisement ranker on padded lists of clicks. The padded positions stay in the softmax's denominator; their scores should be filled with a large negative number first."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.ad = nn.Linear(15, 20)
        self.seeker = nn.Linear(10, 20)
        self.v = nn.Linear(20, 1)

    def forward(self, ads, seeker, clicks, n_ads):
        h = torch.tanh(self.ad(ads) + self.seeker(seeker)[:, None, :])
        scores = self.v(h)[..., 0]
        slots = torch.arange(ads.size(1))
        valid = slots[None, :] < n_ads[:, None]
        logp = F.log_softmax(scores, dim=1)  # fault: mask-after-softmax
        y = clicks * valid
        return -((y * logp).sum(1) / y.sum(1).clamp(min=1)).mean()


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    clicks = torch.zeros(6, 10)
    clicks[torch.arange(6), torch.tensor([0, 2, 1, 3, 0, 2])] = 1.0
    return (torch.randn(6, 10, 15), torch.randn(6, 10), clicks, torch.tensor([4, 10, 6, 8, 3, 7]))
