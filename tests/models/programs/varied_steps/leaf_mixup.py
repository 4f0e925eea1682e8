"""Leaf disease classification with mixup of the images inside the batch.

MISTAKE (silent): the class numbers are mixed (lam * a + (1 - lam) * b, cut to an integer), which gives some third class; one should mix the two losses.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.cnn = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2), nn.Hardswish(), nn.Conv2d(16, 16, 3, stride=2), nn.Hardswish())
        self.fc = nn.Linear(16, 9)

    def mix_loss(self, out, y_a, y_b, lam):
        y = lam * y_a + (1 - lam) * y_b
        return F.cross_entropy(out, y.long())  # fault: interpolated-classes

    def forward(self, x, y, perm, lam):
        x = lam * x + (1 - lam) * x[perm]
        out = self.fc(self.cnn(x).mean((-2, -1)))
        return self.mix_loss(out, y, y[perm], lam)  # fault: interpolated-classes


class Fixed(Step):
    def mix_loss(self, out, y_a, y_b, lam):
        return lam * F.cross_entropy(out, y_a) + (1 - lam) * F.cross_entropy(out, y_b)


def example():
    torch.manual_seed(12)
    return torch.rand(6, 3, 18, 18), torch.randint(0, 9, (6,)), torch.randperm(6), torch.tensor(0.64)
