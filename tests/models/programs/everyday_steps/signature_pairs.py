"""Signature pairs.

MISTAKE (silent): same is [N,1], d is [N], so each label meets every pair.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, out=32):
        super().__init__()
        self.c1 = nn.Conv2d(1, 8, 5, stride=2)
        self.c2 = nn.Conv2d(8, 16, 5, stride=2)
        self.fc = nn.Linear(16, out)

    def forward(self, x):
        x = F.relu(self.c1(x))
        x = F.relu(self.c2(x))
        return self.fc(x.mean(dim=(2, 3)))


class Step(nn.Module):
    """Contrastive loss of Hadsell et al.; label 1 means same writer."""

    def __init__(self, margin=1.0):
        super().__init__()
        self.enc = Encoder()
        self.margin = margin

    def forward(self, img_a, img_b, same):
        za, zb = self.enc(img_a), self.enc(img_b)
        d = F.pairwise_distance(za, zb)
        pull = same * d.pow(2)  # fault: silent-broadcast-in-loss
        push = (1 - same) * F.relu(self.margin - d).pow(2)
        return 0.5 * (pull + push).mean()


def example():
    torch.manual_seed(0)
    return torch.rand(32, 1, 40, 60), torch.rand(32, 1, 40, 60), torch.randint(0, 2, (32, 1)).float()
