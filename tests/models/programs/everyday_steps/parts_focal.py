"""Parts focal.

CORRECT: exponent on p is right for the negatives.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Head(nn.Module):
    def __init__(self, n_cls=9):
        super().__init__()
        self.stem = nn.Conv2d(3, 24, 3, stride=4, padding=1)
        self.mid = nn.Conv2d(24, 24, 3, padding=1)
        self.cls = nn.Conv2d(24, n_cls, 1)
        nn.init.constant_(self.cls.bias, -4.0)

    def forward(self, x):
        return self.cls(F.relu(self.mid(F.relu(self.stem(x)))))


class Step(nn.Module):
    """CenterNet focal loss on Gaussian heatmaps."""

    def __init__(self):
        super().__init__()
        self.head = Head()

    def forward(self, img, heat):
        p = torch.sigmoid(self.head(img)).clamp(1e-4, 1 - 1e-4)
        pos = heat.eq(1).float()
        neg = 1 - pos
        pos_loss = pos * (1 - p) ** 2 * torch.log(p)
        neg_loss = neg * (1 - heat) ** 4 * p ** 2 * torch.log(1 - p)
        n = pos.sum().clamp(min=1)
        return -(pos_loss + neg_loss).sum() / n


def example():
    torch.manual_seed(0)
    heat = torch.rand(4, 9, 16, 16) ** 8
    heat[torch.arange(4), torch.randint(0, 9, (4,)), 5, 7] = 1.0
    return torch.rand(4, 3, 64, 64), heat
