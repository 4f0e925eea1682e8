"""One-step forecast of electric load with a small convolutional network.

MISTAKE (silent): the input window still contains the last value, which is the target; only series[:, :-1] may go in.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class TCN(nn.Module):
    def __init__(self, channels=12):
        super().__init__()
        self.c1 = nn.Conv1d(1, channels, 3)
        self.c2 = nn.Conv1d(channels, channels, 3, dilation=2)
        self.out = nn.Linear(channels, 1)

    def forward(self, x):
        h = F.relu(self.c1(F.pad(x.unsqueeze(1), (2, 0))))  # fault: prediction-reads-target
        h = F.relu(self.c2(F.pad(h, (4, 0))))
        return self.out(h[:, :, -1]).squeeze(-1)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.tcn = TCN()

    def forward(self, series):
        target = series[:, -1]
        pred = self.tcn(series)  # fault: prediction-reads-target
        return F.l1_loss(pred, target)


class Fixed(Step):
    def forward(self, series):
        target = series[:, -1]
        pred = self.tcn(series[:, :-1])
        return F.l1_loss(pred, target)


def example():
    g = torch.Generator().manual_seed(1)
    return (torch.cumsum(torch.randn(6, 24, generator=g) * 0.3, dim=1),)


OPEN = [{0: "batch"}]
