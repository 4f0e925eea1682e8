"""Distils a wildlife camera classifier into a smaller one. Only the teacher's logits are divided by the temperature; the student's should be too."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, classes=13, temperature=4.0):
        super().__init__()
        self.small = nn.Sequential(nn.Conv2d(3, 6, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(24, classes))
        self.big = nn.Sequential(nn.Conv2d(3, 32, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, classes))
        for p in self.big.parameters():
            p.requires_grad = False
        self.temperature = temperature

    def forward(self, photo, animal):
        tau = self.temperature
        logits = self.small(photo)
        q = (self.big(photo).detach() / tau).softmax(1)  # fault: uneven-temperature
        log_p = logits.log_softmax(1)  # fault: uneven-temperature
        distill = -(q * log_p).sum(1).mean() * tau * tau
        return 0.9 * distill + 0.1 * F.cross_entropy(logits, animal)


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(5, 3, 25, 33), torch.randint(0, 13, (5,)))
