import torch
from torch import nn

QUANTILES = (0.1, 0.5, 0.9)


def pinball(preds, y):
    total = 0.0
    for i, q in enumerate(QUANTILES):
        err = y - preds[:, i:i + 1]  # fault: silent-broadcast-in-loss
        total = total + torch.max((q - 1) * err, q * err).mean()
    return total / len(QUANTILES)


class QuantileNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(10, 24)
        self.fc2 = nn.Linear(24, len(QUANTILES))

    def forward(self, x, y):
        return pinball(self.fc2(torch.relu(self.fc1(x))), y)  # fault: silent-broadcast-in-loss


def example():
    return (torch.randn(16, 10), torch.randn(16))


Step = QuantileNet
