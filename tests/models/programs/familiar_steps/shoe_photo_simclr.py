"""Trains an encoder of shoe photos with the NT-Xent loss on two views. The similarity of each view with itself stays in the softmax; the diagonal should be masked with -inf."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(),
                                      nn.Conv2d(16, 24, 3, stride=2), nn.ReLU(),
                                      nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.projector = nn.Sequential(nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 14))
        self.tau = 0.2

    def forward(self, view_a, view_b):
        n = view_a.size(0)
        images = torch.cat([view_a, view_b], dim=0)
        z = F.normalize(self.projector(self.backbone(images)), dim=1)
        sim = torch.mm(z, z.t()) / self.tau  # fault: candidate-is-itself
        partner = torch.cat([torch.arange(n, 2 * n), torch.arange(0, n)])
        return F.cross_entropy(sim, partner)  # fault: candidate-is-itself


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(7, 3, 20, 20), torch.randn(7, 3, 20, 20))
