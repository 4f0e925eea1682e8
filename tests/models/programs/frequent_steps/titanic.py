"""Titanic.

MISTAKE (silent): softmax over a single output unit is constant 1, should be a sigmoid.
"""
import torch
import torch.nn as nn


class TitanicNet(nn.Module):
    """Survival prediction; numeric columns plus embarked / pclass."""

    def __init__(self):
        super().__init__()
        self.embarked = nn.Embedding(4, 2)
        self.pclass = nn.Embedding(4, 2)
        self.fc = nn.Sequential(
            nn.Linear(6 + 4, 24),
            nn.ReLU(),
            nn.Linear(24, 12),
            nn.ReLU(),
            nn.Linear(12, 1),
            nn.Softmax(dim=1),  # fault: softmax-over-batch-axis
        )

    def forward(self, num, embarked, pclass):
        x = torch.cat([num, self.embarked(embarked), self.pclass(pclass)], dim=1)
        return self.fc(x)  # fault: softmax-over-batch-axis


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = TitanicNet()

    def forward(self, numeric, embarked, pclass, survived):
        p = self.net(numeric, embarked, pclass).squeeze(1).clamp(1e-6, 1 - 1e-6)
        y = survived.float()
        loss = -(y * torch.log(p) + (1 - y) * torch.log(1 - p))
        return loss.mean()


def example():
    g = torch.Generator().manual_seed(29)
    n = 14
    return (torch.randn(n, 6, generator=g), torch.randint(0, 4, (n,), generator=g),
            torch.randint(1, 4, (n,), generator=g), torch.randint(0, 2, (n,), generator=g))
