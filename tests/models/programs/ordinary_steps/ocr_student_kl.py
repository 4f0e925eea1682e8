"""Distils a line OCR model with log-probabilities on both sides, padding frames left out."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, chars=19):
        super().__init__()
        self.teacher = nn.Sequential(nn.Conv1d(16, 40, 3, padding=1), nn.ReLU(), nn.Conv1d(40, chars, 1))
        self.student = nn.Sequential(nn.Conv1d(16, 12, 3, padding=1), nn.ReLU(), nn.Conv1d(12, chars, 1))

    def forward(self, columns, valid):
        T = 2.0
        log_t = F.log_softmax(self.teacher(columns).detach() / T, dim=1)
        log_s = F.log_softmax(self.student(columns) / T, dim=1)
        kl = F.kl_div(log_s, log_t, reduction="none", log_target=True)
        per_frame = kl.sum(dim=1)
        weight = valid.to(per_frame.dtype)
        return T * T * (per_frame * weight).sum() / weight.sum().clamp_min(1.0)


def example():
    """A tuple of tensors, with realistic dtypes."""
    lengths = torch.tensor([22, 15, 9, 18])
    return (torch.randn(4, 16, 22), torch.arange(22)[None, :] < lengths[:, None])
