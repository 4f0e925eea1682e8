"""Trains a masked autoencoder on the patches of histology slides. The reconstruction error is averaged over the visible patches, those that the encoder sees; it should be averaged over the hidden ones."""
import torch
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, patch=27, dim=20, n=16):
        super().__init__()
        self.to_tokens = nn.Linear(patch, dim)
        self.mask_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos = nn.Parameter(0.02 * torch.randn(1, n, dim))
        self.qkv = nn.Linear(dim, 3 * dim)
        self.norm = nn.LayerNorm(dim)
        self.decode = nn.Linear(dim, patch)

    def attend(self, h):
        q, k, v = self.qkv(self.norm(h)).chunk(3, -1)
        w = torch.softmax(q @ k.transpose(-2, -1) * q.size(-1) ** -0.5, dim=-1)
        return h + w @ v

    def forward(self, patches, hidden):
        hidden = hidden.float()
        gate = hidden.unsqueeze(-1)
        h = self.to_tokens(patches) * (1 - gate) + self.mask_token * gate
        recon = self.decode(self.attend(h + self.pos))
        per_patch = (recon - patches).pow(2).mean(dim=-1)
        seen = 1 - hidden
        return (per_patch * seen).sum() / seen.sum()  # fault: no-rule


def example():
    """A tuple of tensors, with realistic dtypes."""
    hidden = torch.zeros(5, 16, dtype=torch.bool)
    hidden[:, [0, 2, 3, 5, 7, 8, 11, 12, 13, 15]] = True
    return (torch.randn(5, 16, 27), hidden)
