"""Gesture recognition from keypoint clips with a learned position embedding.

MISTAKE (fails): the positions count from 1 to T but the table has T rows; the last index is out of range.
"""
import torch
from torch import nn


class Step(nn.Module):
    T = 10

    def __init__(self):
        super().__init__()
        self.joint = nn.Linear(14, 20)
        self.place = nn.Embedding(self.T, 20)
        self.mix = nn.GRU(20, 20, batch_first=True)
        self.out = nn.Linear(20, 8)

    def index(self):
        return torch.arange(1, self.T + 1)  # fault: index-out-of-range

    def forward(self, clip, gesture):
        x = self.joint(clip.flatten(2)) + self.place(self.index())  # fault: index-out-of-range
        h, _ = self.mix(x)
        return nn.functional.cross_entropy(self.out(h.mean(1)), gesture)


class Fixed(Step):
    def index(self):
        return torch.arange(self.T)


FAILS = True


def example():
    torch.manual_seed(65)
    return torch.randn(3, 10, 7, 2), torch.randint(0, 8, (3,))
