"""Kd convnet.

CORRECT: unusual, and as it is meant.
"""
import torch
from torch import nn
import torch.nn.functional as F


class ConvNet(nn.Module):
    def __init__(self, width, n_classes):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.conv = nn.Conv2d(width, width * 2, 3, stride=2, padding=1)
        self.head = nn.Linear(width * 2, n_classes)

    def forward(self, x):
        h = F.relu(self.conv(F.relu(self.stem(x))))
        return self.head(h.mean((-2, -1)))


class DistillLoss(nn.Module):
    def __init__(self, tau, beta):
        super().__init__()
        self.tau, self.beta = tau, beta
        self.kl = nn.KLDivLoss(reduction="batchmean", log_target=True)

    def forward(self, student, teacher, target):
        log_p = (student / self.tau).log_softmax(1)
        log_q = (teacher / self.tau).log_softmax(1)
        return (1 - self.beta) * F.cross_entropy(student, target) \
            + self.beta * self.tau * self.tau * self.kl(log_p, log_q)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.student = ConvNet(6, 8)
        self.teacher = ConvNet(16, 8).requires_grad_(False)
        self.loss = DistillLoss(4.0, 0.9)

    def forward(self, image, target):
        return self.loss(self.student(image), self.teacher(image).detach(), target)


def example():
    g = torch.Generator().manual_seed(20)
    return torch.randn(6, 3, 12, 12, generator=g), torch.randint(0, 8, (6,), generator=g)
