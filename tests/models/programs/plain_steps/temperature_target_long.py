import torch
from torch import nn


class Forecast(nn.Module):
    def __init__(self, window=24):
        super().__init__()
        self.lin = nn.Linear(window, 1)

    def forward(self, history, next_value):
        target = next_value.long()  # fault: target-cut-to-integers
        pred = self.lin(history).squeeze(-1)
        return ((pred - target) ** 2).mean()


def example():
    return (torch.randn(12, 24), torch.randn(12) * 2)


Step = Forecast
