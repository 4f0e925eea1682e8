"""Classify bird calls from log-mel frames with a small 1-d conv net.

MISTAKE (silent): NLLLoss over raw scores; the log_softmax is missing.
"""
import torch
from torch import nn


class Conv(nn.Sequential):
    def __init__(self, i, o, k=3):
        super().__init__(nn.Conv1d(i, o, k, padding=k // 2), nn.GroupNorm(2, o), nn.SiLU())


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(Conv(20, 16), Conv(16, 16, 5), nn.MaxPool1d(2), Conv(16, 24))
        self.fc = nn.Linear(48, 9)
        self.nll = nn.NLLLoss()

    def head(self, h):
        return self.fc(torch.cat([h.mean(-1), h.amax(-1)], 1))

    def forward(self, mel, species):
        h = self.features(mel)
        return self.nll(self.head(h), species)  # fault: logits-into-probability-loss


class Fixed(Step):
    def head(self, h):
        return torch.log_softmax(super().head(h), dim=1)


def example():
    torch.manual_seed(21)
    return torch.randn(5, 20, 32), torch.randint(0, 9, (5,))


OPEN = [{0: "clips"}, {0: "clips"}]
