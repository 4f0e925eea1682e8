"""Trains an LSTM that forecasts bike demand at stations from the past hours, inputs being (batch, time, features). The LSTM is built without batch_first, so it recurs over the batch axis; batch_first=True is needed."""
import torch
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, features=7, hidden=20):
        super().__init__()
        self.lstm = nn.LSTM(features, hidden)  # fault: reduction-over-batch-axis
        self.fc = nn.Linear(hidden, 1)
        self.criterion = nn.MSELoss()

    def forward(self, history, demand):
        out, _ = self.lstm(history)  # fault: reduction-over-batch-axis
        last = out[:, -1, :]
        return self.criterion(self.fc(last).squeeze(1), demand)


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(10, 24, 7), torch.randn(10))
