"""Street-to-shop retrieval: anchor photo, matching product, other product.

MISTAKE (silent): triplet loss sign swapped: relu(d_neg - d_pos + margin).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Embedder(nn.Module):
    def __init__(self, out=16):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(3, 12, 5, stride=2), nn.ReLU(),
            nn.Conv2d(12, 24, 3, stride=2), nn.ReLU(),
            nn.AdaptiveMaxPool2d(1),
        )
        self.fc = nn.Linear(24, out)

    def forward(self, x):
        return F.normalize(self.fc(self.conv(x).flatten(1)), p=2, dim=1)


class TripletLoss(nn.Module):
    def __init__(self, margin=0.3):
        super().__init__()
        self.margin = margin

    def forward(self, anchor, positive, negative):
        d_pos = (anchor - positive).pow(2).sum(1)
        d_neg = (anchor - negative).pow(2).sum(1)
        return F.relu(d_neg - d_pos + self.margin).mean()  # fault: positive-and-negative-exchanged


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = Embedder()
        self.loss = TripletLoss()

    def forward(self, anchor, positive, negative):
        a, p, n = self.embed(anchor), self.embed(positive), self.embed(negative)
        return self.loss(a, p, n)


def example():
    g = torch.Generator().manual_seed(28)
    return tuple(torch.rand(4, 3, 20, 20, generator=g) for _ in range(3))
