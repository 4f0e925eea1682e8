"""Fixmatch ssl.

MISTAKE (silent): inverted, keeps the unconfident pseudo labels and drops the confident ones.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Classifier(nn.Module):
    def __init__(self, d=22, n_classes=6):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, n_classes))

    def forward(self, x):
        return self.net(x)


class Step(nn.Module):
    """Supervised loss + pseudo labels of the EMA teacher on weakly augmented data."""

    def __init__(self, threshold=0.95, lambda_u=1.0):
        super().__init__()
        self.student = Classifier()
        self.teacher = Classifier()
        for p in self.teacher.parameters():
            p.requires_grad_(False)
        self.threshold, self.lambda_u = threshold, lambda_u

    def forward(self, x_l, y_l, x_weak, x_strong):
        sup = F.cross_entropy(self.student(x_l), y_l)
        with torch.no_grad():
            probs = torch.softmax(self.teacher(x_weak), dim=-1)
            conf, pseudo = probs.max(dim=-1)
            mask = conf.le(self.threshold).float()  # fault: unsure-labels-kept
        unsup = F.cross_entropy(self.student(x_strong), pseudo, reduction="none")
        unsup = (unsup * mask).mean()  # fault: unsure-labels-kept
        return sup + self.lambda_u * unsup


def example():
    torch.manual_seed(0)
    xu = torch.randn(42, 22)
    return torch.randn(14, 22), torch.randint(0, 6, (14,)), xu, xu + 0.3 * torch.randn(42, 22)
