"""Ecg encoder.

CORRECT: sequence-first layer gets [time, batch, dim].
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    """12-lead ECG, multi-label; x is [batch, time, leads]."""

    def __init__(self, leads=12, dim=48, n_lab=5):
        super().__init__()
        self.stem = nn.Conv1d(leads, dim, 8, stride=8)
        self.layer = nn.TransformerEncoderLayer(dim, nhead=4, dim_feedforward=96, dropout=0.0)
        self.head = nn.Linear(dim, n_lab)

    def forward(self, x, y):
        h = self.stem(x.transpose(1, 2))
        h = h.permute(2, 0, 1)
        h = self.layer(h)
        logits = self.head(h.mean(dim=0))
        p = torch.sigmoid(logits).clamp(1e-6, 1 - 1e-6)
        loss = -(y * p.log() + (1 - y) * (1 - p).log())
        return loss.sum(dim=1).mean()


def example():
    torch.manual_seed(0)
    return torch.randn(10, 256, 12), (torch.rand(10, 5) < 0.3).float()
