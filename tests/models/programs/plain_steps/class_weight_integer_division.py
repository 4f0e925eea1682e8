import torch
import torch.nn.functional as F
from torch import nn


class Balanced(nn.Module):
    def __init__(self, k=4):
        super().__init__()
        self.k = k
        self.fc = nn.Linear(13, k)

    def forward(self, x, y):
        counts = F.one_hot(y, self.k).sum(0)
        w = y.shape[0] // (self.k * counts.clamp(min=1))  # fault: quotient-always-zero
        nll = F.cross_entropy(self.fc(x), y, reduction="none")
        return (nll * w.float()[y]).mean()


def example():
    return (torch.randn(20, 13), torch.tensor([0] * 11 + [1] * 5 + [2] * 3 + [3]))


Step = Balanced
