"""Temporal convolution net that predicts the next value of each series at each time step.

MISTAKE (silent): Conv1d with padding=1 and kernel 3 is centred, so the output at t sees x[t+1], the value it has to predict;
pad only on the left (F.pad(x, (2, 0)) and padding=0).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, ch=8):
        super().__init__()
        self.c1 = nn.Conv1d(1, ch, 3)
        self.c2 = nn.Conv1d(ch, ch, 3)
        self.head = nn.Conv1d(ch, 1, 1)

    def conv(self, layer, x):
        return F.conv1d(x, layer.weight, layer.bias, padding=1)  # fault: prediction-reads-target

    def forward(self, series):
        x = series.unsqueeze(1)                   # [B, 1, T]
        h = torch.relu(self.conv(self.c1, x))  # fault: prediction-reads-target
        h = torch.relu(self.conv(self.c2, h))  # fault: prediction-reads-target
        pred = self.head(h).squeeze(1)            # [B, T]
        return F.mse_loss(pred[:, :-1], series[:, 1:])  # fault: prediction-reads-target


class Fixed(Step):
    def conv(self, layer, x):
        return F.conv1d(F.pad(x, (2, 0)), layer.weight, layer.bias)


def example():
    g = torch.Generator().manual_seed(33)
    t = torch.arange(20.0)
    return (torch.sin(t[None] * torch.rand(4, 1, generator=g)) + 0.1 * torch.randn(4, 20, generator=g),)
