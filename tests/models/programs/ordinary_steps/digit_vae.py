"""Trains a variational autoencoder of digit images. The KL divergence lacks its minus sign, so minimising the loss drives the posterior away from the prior; it should be -0.5 times the sum."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(196, 50)
        self.fc21 = nn.Linear(50, 6)
        self.fc22 = nn.Linear(50, 6)
        self.fc3 = nn.Linear(6, 50)
        self.fc4 = nn.Linear(50, 196)

    def forward(self, x, eps):
        flat = x.view(-1, 196)
        h = F.relu(self.fc1(flat))
        mu, logvar = self.fc21(h), self.fc22(h)
        z = mu + eps * torch.exp(0.5 * logvar)
        recon = self.fc4(F.relu(self.fc3(z)))
        bce = F.binary_cross_entropy_with_logits(recon, flat, reduction="sum")
        kld = 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())  # fault: one-sided-loss
        return (bce + kld) / x.size(0)


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.rand(12, 1, 14, 14), torch.randn(12, 6))
