"""Training with per-sample confidence weights coming from the data loader.

MISTAKE (silent): criterion already averaged over the batch, needs reduction="none"; the weights only scale the whole loss.
"""
import torch
import torch.nn as nn


class SmallResNet(nn.Module):
    def __init__(self, n_classes=5):
        super().__init__()
        self.inp = nn.Linear(20, 32)
        self.blocks = nn.ModuleList(
            [nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32)) for _ in range(2)])
        self.head = nn.Linear(32, n_classes)

    def forward(self, x):
        x = self.inp(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = SmallResNet()
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, features, labels, sample_weight):
        logits = self.model(features)
        losses = self.criterion(logits, labels)  # fault: reduction-over-batch-axis
        loss = (losses * sample_weight).mean()  # fault: reduction-over-batch-axis
        return loss


def example():
    g = torch.Generator().manual_seed(24)
    return (torch.randn(8, 20, generator=g), torch.randint(0, 5, (8,), generator=g),
            torch.rand(8, generator=g))
