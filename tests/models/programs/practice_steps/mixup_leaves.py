"""Leaf disease classifier trained with mixup and soft labels.

MISTAKE (silent): the arguments of cross_entropy are swapped, the mixed label distribution is taken as logits
and the logits as target; it should be cross_entropy(logits, soft_label).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class LeafNet(nn.Module):
    def __init__(self, n_class=8):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1, groups=8)
        self.fc = nn.Linear(16, n_class)

    def forward(self, x):
        x = F.silu(self.conv1(x))
        x = F.silu(self.conv2(x))
        x = F.adaptive_avg_pool2d(x, 1).flatten(1)
        return self.fc(x)


def mixup(x, y, perm, lam):
    return lam * x + (1 - lam) * x[perm], lam * y + (1 - lam) * y[perm]


class Step(nn.Module):
    n_class = 8

    def __init__(self):
        super().__init__()
        self.net = LeafNet(self.n_class)

    def forward(self, image, label, perm):
        onehot = F.one_hot(label, self.n_class).float()
        image, onehot = mixup(image, onehot, perm, 0.7)
        return F.cross_entropy(onehot, self.net(image))  # fault: float-class-index


class Fixed(Step):
    def forward(self, image, label, perm):
        onehot = F.one_hot(label, self.n_class).float()
        image, onehot = mixup(image, onehot, perm, 0.7)
        return F.cross_entropy(self.net(image), onehot)


def example():
    g = torch.Generator().manual_seed(1)
    return (
        torch.rand(6, 3, 14, 14, generator=g),
        torch.randint(0, 8, (6,), generator=g),
        torch.randperm(6, generator=g),
    )
