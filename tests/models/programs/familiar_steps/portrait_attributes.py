"""Trains three heads (glasses, smile, age) on portraits. The smile head is trained on the glasses column; it should get column 1."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 10, 5, stride=3), nn.ReLU(), nn.AdaptiveMaxPool2d(1), nn.Flatten())
        self.glasses = nn.Linear(10, 1)
        self.smile = nn.Linear(10, 1)
        self.age = nn.Linear(10, 1)

    def forward(self, portrait, attributes):
        f = self.features(portrait)
        loss_glasses = F.binary_cross_entropy_with_logits(self.glasses(f)[:, 0], attributes[:, 0])
        loss_smile = F.binary_cross_entropy_with_logits(self.smile(f)[:, 0], attributes[:, 0])  # fault: column-predicted-twice
        loss_age = F.smooth_l1_loss(self.age(f)[:, 0], attributes[:, 2] / 100.0)
        return loss_glasses + loss_smile + 2.0 * loss_age


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(8, 3, 27, 23),
            torch.stack([(torch.rand(8) > 0.5).float(), (torch.rand(8) > 0.5).float(), torch.randint(5, 90, (8,)).float()], dim=1))
