"""EEG sleep staging: windows of frames through a transformer layer with a fixed sinusoid table.

MISTAKE (silent): the table is indexed by the batch axis (x is batch first), so that all frames of one night share one position.
"""
import math
import torch
from torch import nn


class SinTable(nn.Module):
    def __init__(self, d, longest=64):
        super().__init__()
        t = torch.arange(longest).float()[:, None]
        w = torch.exp(torch.arange(0, d, 2).float() * (-math.log(10000.0) / d))
        pe = torch.zeros(longest, d)
        pe[:, 0::2], pe[:, 1::2] = torch.sin(t * w), torch.cos(t * w)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[: x.size(0)].unsqueeze(1)  # fault: silent-broadcast-in-loss


class BatchFirstTable(SinTable):
    def forward(self, x):
        return x + self.pe[: x.size(1)].unsqueeze(0)


class Step(nn.Module):
    table = SinTable

    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(10, 16)
        self.position = self.table(16)
        self.q, self.k, self.v = (nn.Linear(16, 16) for _ in range(3))
        self.stage = nn.Linear(16, 5)

    def forward(self, frames, stages):
        x = self.position(self.inp(frames))  # fault: silent-broadcast-in-loss
        w = torch.softmax(self.q(x) @ self.k(x).transpose(-2, -1) / 4.0, -1)
        x = x + w @ self.v(x)
        return nn.functional.cross_entropy(self.stage(x).flatten(0, 1), stages.flatten())


class Fixed(Step):
    table = BatchFirstTable


def example():
    torch.manual_seed(43)
    return torch.randn(4, 9, 10), torch.randint(0, 5, (4, 9))
