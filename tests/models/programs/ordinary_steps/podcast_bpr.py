"""Trains podcast recommendations with Bayesian personalised ranking. The minus sign in front of the log-sigmoid is missing, so minimising it drives the margin to minus infinity; it should be negated."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.listeners = nn.Embedding(100, 16)
        self.shows = nn.Embedding(70, 16)

    def forward(self, listener, liked, skipped):
        u = self.listeners(listener)
        margin = torch.einsum("bd,bd->b", u, self.shows(liked)) - torch.einsum("bd,bd->b", u, self.shows(skipped))
        reg = u.pow(2).sum(1).mean()
        return F.logsigmoid(margin).mean() + 1e-4 * reg  # fault: one-sided-loss


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randint(0, 100, (36,)), torch.randint(0, 70, (36,)), torch.randint(0, 70, (36,)))
