"""Trains a score network of point clouds by denoising score matching. The score should match -noise / sigma, so sigma * score + noise belongs in the square; the sign of the noise is wrong."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.lin1 = nn.Linear(3 + 1, 36)
        self.lin2 = nn.Linear(72, 36)
        self.lin3 = nn.Linear(36, 3)

    def score(self, pts, sigma):
        tag = sigma.log().expand(-1, pts.shape[1], 1)
        h = F.relu(self.lin1(torch.cat([pts, tag], -1)))
        pooled = h.amax(dim=1, keepdim=True).expand_as(h)
        h = F.relu(self.lin2(torch.cat([h, pooled], -1)))
        return self.lin3(h) / sigma

    def forward(self, cloud, sigma, noise):
        s = sigma.view(-1, 1, 1)
        perturbed = cloud + s * noise
        gap = s * self.score(perturbed, s) - noise  # fault: no-rule
        return 0.5 * gap.square().sum(dim=-1).mean()


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(4, 50, 3), torch.rand(4) * 0.9 + 0.05, torch.randn(4, 50, 3))
