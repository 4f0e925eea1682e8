"""Sensor imputer.

MISTAKE (silent): already averaged to a scalar, the mask below then has no effect (needs reduction='none').
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Imputer(nn.Module):
    def __init__(self, n_sensors=8, hidden=30):
        super().__init__()
        self.inp = nn.Linear(2 * n_sensors, hidden)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, n_sensors)

    def forward(self, x, observed):
        h = torch.cat([x * observed, observed], dim=-1)
        h, _ = self.rnn(torch.tanh(self.inp(h)))
        return self.out(h)


class Step(nn.Module):
    """Hide part of the readings and reconstruct them; only hidden cells count in the loss."""

    def __init__(self):
        super().__init__()
        self.model = Imputer()

    def forward(self, x, observed):
        recon = self.model(x, observed)
        hidden = 1.0 - observed
        err = F.mse_loss(recon, x)  # fault: reduction-over-batch-axis
        loss = (err * hidden).sum() / hidden.sum().clamp(min=1.0)
        return loss


def example():
    torch.manual_seed(0)
    return torch.randn(10, 22, 8), (torch.rand(10, 22, 8) < 0.8).float()
