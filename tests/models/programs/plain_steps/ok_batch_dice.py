import torch
import torch.nn.functional as F
from torch import nn


class BatchDice(nn.Module):
    def __init__(self, k=4):
        super().__init__()
        self.k = k
        self.net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, k, 1))

    def forward(self, x, y):
        p = self.net(x).softmax(1)
        t = F.one_hot(y, self.k).permute(0, 3, 1, 2).to(p.dtype)
        axes = (0, 2, 3)
        inter = (p * t).sum(axes)
        den = p.sum(axes) + t.sum(axes)
        dice = (2 * inter + 1e-5) / (den + 1e-5)
        return 1 - dice[1:].mean()


def example():
    return (torch.randn(2, 1, 11, 11), torch.randint(0, 4, (2, 11, 11)))


Step = BatchDice
