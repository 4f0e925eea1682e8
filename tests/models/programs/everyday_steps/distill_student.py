"""Distill student.

MISTAKE (silent): operands exchanged, should be kl_div(log_student, p_teacher).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


def net(width, n_cls=20):
    return nn.Sequential(nn.Linear(40, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, n_cls))


class Step(nn.Module):
    def __init__(self, T=4.0, alpha=0.9):
        super().__init__()
        self.student = net(32)
        self.teacher = net(128)
        self.T, self.alpha = T, alpha

    def forward(self, x, y):
        s = self.student(x)
        with torch.no_grad():
            t = self.teacher(x)
        log_t = F.log_softmax(t / self.T, dim=1)
        p_s = F.softmax(s / self.T, dim=1)
        soft = F.kl_div(log_t, p_s, reduction="batchmean") * self.T ** 2  # fault: swapped-loss-sides
        hard = F.cross_entropy(s, y)
        return self.alpha * soft + (1 - self.alpha) * hard


def example():
    torch.manual_seed(0)
    return torch.randn(64, 40), torch.randint(0, 20, (64,))
