"""Trains DINO on two crops of herbarium sheets, a centred and sharpened teacher giving the targets of the other crop."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, prototypes=25):
        super().__init__()
        self.student = nn.Sequential(nn.Linear(28, 40), nn.GELU(), nn.Linear(40, prototypes))
        self.teacher = nn.Sequential(nn.Linear(28, 40), nn.GELU(), nn.Linear(40, prototypes))
        self.register_buffer("center", 0.05 * torch.randn(1, prototypes))

    def forward(self, crop1, crop2):
        stacked = torch.cat([crop1, crop2], dim=0)
        s = self.student(stacked) / 0.1
        t = F.softmax((self.teacher(stacked) - self.center) / 0.04, dim=-1).detach()
        s1, s2 = s.chunk(2)
        t1, t2 = t.chunk(2)
        total = 0.0
        for target, out in ((t1, s2), (t2, s1)):
            total = total + torch.sum(-target * F.log_softmax(out, dim=-1), dim=-1).mean()
        return total / 2


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(11, 28), torch.randn(11, 28))
