"""Kd logspace.

CORRECT: both in log space and log_target=True.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class CNN(nn.Module):
    def __init__(self, widths, n_classes=10):
        super().__init__()
        chans = [3] + list(widths)
        self.convs = nn.ModuleList([nn.Conv2d(a, b, 3, stride=2, padding=1) for a, b in zip(chans[:-1], chans[1:])])
        self.fc = nn.Linear(chans[-1], n_classes)

    def forward(self, x):
        for c in self.convs:
            x = F.relu(c(x))
        return self.fc(x.mean((2, 3)))


class Step(nn.Module):
    def __init__(self, tau=3.0, alpha=0.5):
        super().__init__()
        self.student, self.teacher = CNN([8, 12]), CNN([16, 24, 32])
        self.teacher.requires_grad_(False)
        self.tau, self.alpha = tau, alpha

    def forward(self, images, labels):
        s = self.student(images)
        with torch.no_grad():
            t = self.teacher(images)
        log_s = F.log_softmax(s / self.tau, dim=-1)
        log_t = F.log_softmax(t / self.tau, dim=-1)
        kd = F.kl_div(log_s, log_t, reduction="batchmean", log_target=True) * self.tau ** 2
        return self.alpha * kd + (1 - self.alpha) * F.cross_entropy(s, labels)


def example():
    torch.manual_seed(0)
    return torch.randn(9, 3, 32, 32), torch.randint(0, 10, (9,))
