"""Trains a fabric texture encoder with DINO. The centre is added to the teacher's output; it should be subtracted."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, out=32):
        super().__init__()
        self.student = nn.Sequential(nn.Linear(48, 56), nn.GELU(), nn.Linear(56, out))
        self.teacher = nn.Sequential(nn.Linear(48, 56), nn.GELU(), nn.Linear(56, out))
        self.teacher.load_state_dict(self.student.state_dict())

    def forward(self, crop1, crop2):
        s1, s2 = self.student(crop1), self.student(crop2)
        with torch.no_grad():
            t1, t2 = self.teacher(crop1), self.teacher(crop2)
            center = torch.cat([t1, t2]).mean(dim=0, keepdim=True)
            p1, p2 = (F.softmax((t + center) / 0.04, dim=-1) for t in (t1, t2))  # fault: centre-added
        l12 = torch.sum(-p1 * F.log_softmax(s2 / 0.1, dim=-1), dim=-1)  # fault: centre-added
        l21 = torch.sum(-p2 * F.log_softmax(s1 / 0.1, dim=-1), dim=-1)
        return (l12.mean() + l21.mean()) / 2


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(14, 48), torch.randn(14, 48))
