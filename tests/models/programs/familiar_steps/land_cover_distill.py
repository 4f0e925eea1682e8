"""Distils a dense land cover model pixel by pixel, with log targets and the classes on axis 1."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.student = nn.Sequential(nn.Conv2d(4, 10, 3, padding=1), nn.ReLU(), nn.Conv2d(10, 7, 1))
        self.teacher = nn.Sequential(nn.Conv2d(4, 40, 3, padding=1), nn.ReLU(), nn.Conv2d(40, 7, 1))
        self.teacher.requires_grad_(False)

    def forward(self, tile, cloud_free):
        T = 2.0
        log_s = torch.log_softmax(self.student(tile) / T, dim=-3)
        log_t = torch.log_softmax(self.teacher(tile) / T, dim=-3)
        kl = F.kl_div(log_s, log_t, reduction="none", log_target=True).sum(dim=1)
        seen = cloud_free.to(kl.dtype).squeeze(1)
        return (kl * seen).sum() / seen.sum().clamp(min=1) * T * T


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(3, 4, 16, 18), torch.rand(3, 1, 16, 18) > 0.3)
