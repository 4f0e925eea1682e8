"""Sensor encoder.

MISTAKE (silent): layer built without batch_first=True, attention runs over the batch.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    """Activity recognition from windows of IMU data, x is [batch, time, channels]."""

    def __init__(self, channels=9, dim=48, n_cls=8, window=64):
        super().__init__()
        self.inp = nn.Linear(channels, dim)
        self.pos = nn.Parameter(torch.randn(1, window, dim) * 0.02)
        layer = nn.TransformerEncoderLayer(dim, nhead=4, dim_feedforward=96, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, num_layers=1)
        self.head = nn.Linear(dim, n_cls)

    def forward(self, x, label):
        h = self.inp(x) + self.pos
        h = self.encoder(h)  # fault: reduction-over-batch-axis
        pooled = h.mean(dim=1)
        logits = self.head(pooled)
        loss = F.cross_entropy(logits, label)
        acc = (logits.argmax(dim=1) == label).float().mean()
        return loss, acc


def example():
    torch.manual_seed(0)
    return torch.randn(24, 64, 9), torch.randint(0, 8, (24,))
