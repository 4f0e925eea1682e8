"""Remaining useful life from sensor windows (batch, time, sensors).

MISTAKE (silent): LSTM without batch_first fed with (batch, time, features): recurs over the batch.
"""
import torch
import torch.nn as nn


class RULNet(nn.Module):
    def __init__(self, n_sensors=14, hidden=20):
        super().__init__()
        self.norm = nn.LayerNorm(n_sensors)
        self.lstm = nn.LSTM(n_sensors, hidden, num_layers=1)  # fault: reduction-over-batch-axis
        self.head = nn.Sequential(nn.Linear(hidden, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, window):
        h, _ = self.lstm(self.norm(window))  # fault: reduction-over-batch-axis
        last = h[:, -1, :]
        return self.head(last).squeeze(-1)


class Step(nn.Module):
    def __init__(self, max_rul=125.0):
        super().__init__()
        self.net = RULNet()
        self.max_rul = max_rul

    def forward(self, window, rul):
        target = rul.clamp(max=self.max_rul) / self.max_rul
        pred = self.net(window)
        loss = ((pred - target) ** 2).mean().sqrt()
        return loss


def example():
    g = torch.Generator().manual_seed(22)
    return torch.randn(6, 25, 14, generator=g), torch.randint(0, 200, (6,), generator=g).float()
