"""Demand forecast with three quantile outputs (0.1, 0.5, 0.9) trained by the pinball loss.

MISTAKE (silent): the second branch is (1 - q) * err, so for a negative error both branches are negative and the loss has no lower bound; it should be (q - 1) * err.
"""
import torch
from torch import nn


class Step(nn.Module):
    quantiles = (0.1, 0.5, 0.9)

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 20, batch_first=True)
        self.head = nn.Linear(20, len(self.quantiles))

    def pinball(self, err, q):
        return torch.max(q * err, (1 - q) * err)  # fault: unbounded-loss

    def forward(self, history, demand):
        out, _ = self.lstm(history)
        pred = self.head(out[:, -1])
        losses = []
        for i, q in enumerate(self.quantiles):
            errors = demand - pred[:, i]
            losses.append(self.pinball(errors, q))  # fault: unbounded-loss
        return torch.stack(losses, dim=1).sum(dim=1).mean()


class Fixed(Step):
    def pinball(self, err, q):
        return torch.max(q * err, (q - 1) * err)


def example():
    torch.manual_seed(17)
    return torch.randn(5, 7, 3), torch.randn(5)
