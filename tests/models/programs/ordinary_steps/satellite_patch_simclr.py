"""Trains a SimCLR encoder on two augmented views of satellite patches with NT-Xent. The similarity of every embedding with itself stays among the candidates; the diagonal should be filled with minus infinity before the cross entropy."""
import torch
import torch.nn.functional as F
from torch import nn


def nt_xent(z_a, z_b, temperature):
    n = z_a.size(0)
    z = F.normalize(torch.cat([z_a, z_b], dim=0), dim=1)
    sim = torch.mm(z, z.t()) / temperature
    idx = torch.arange(n, device=z.device)
    targets = torch.cat([idx + n, idx])
    return F.cross_entropy(sim, targets)  # fault: candidate-is-itself


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(4, 12, 3, stride=2), nn.ReLU(),
            nn.Conv2d(12, 24, 3, stride=2), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )
        self.projector = nn.Sequential(nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 10))

    def embed(self, v):
        return self.projector(self.backbone(v))

    def forward(self, view1, view2):
        return nt_xent(self.embed(view1), self.embed(view2), 0.2)  # fault: candidate-is-itself


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(9, 4, 16, 16), torch.randn(9, 4, 16, 16))
