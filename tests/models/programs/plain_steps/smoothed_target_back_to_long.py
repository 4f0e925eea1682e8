import torch
import torch.nn.functional as F
from torch import nn


def smooth(y, eps=0.1):
    s = y * (1.0 - eps) + 0.5 * eps
    return s.to(y.dtype)


class MultiLabel(nn.Module):
    def __init__(self, n=20, labels=6):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n, 32), nn.ReLU(), nn.Linear(32, labels))

    def forward(self, x, y):
        """y: int64 multi-hot [N, labels]"""
        return F.binary_cross_entropy_with_logits(self.net(x), smooth(y).float())  # fault: target-cut-to-integers


def example():
    return (torch.randn(8, 20), torch.randint(0, 2, (8, 6)))


Step = MultiLabel
