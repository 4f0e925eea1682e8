"""Fraud f1 metric.

MISTAKE (silent): metric: precision divides by tp+fn (recall), F1 is wrong.
"""
import torch
from torch import nn
import torch.nn.functional as F


def binary_f1(logits, target, threshold=0.5, eps=1e-7):
    pred = (torch.sigmoid(logits) > threshold).float()
    tp = (pred * target).sum()
    fp = (pred * (1 - target)).sum()
    fn = ((1 - pred) * target).sum()
    precision = tp / (tp + fn + eps)  # fault: harmonic-mean-of-one
    recall = tp / (tp + fn + eps)
    f1 = 2 * precision * recall / (precision + recall + eps)
    return f1, fp


class FraudNet(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.fc1 = nn.Linear(d, 48)
        self.fc2 = nn.Linear(48, 24)
        self.out = nn.Linear(24, 1)

    def forward(self, x):
        x = F.leaky_relu(self.fc1(x))
        x = F.leaky_relu(self.fc2(x))
        return self.out(x).squeeze(-1)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = FraudNet(12)
        self.register_buffer("pos_weight", torch.tensor(8.0))

    def forward(self, features, is_fraud):
        logits = self.net(features)
        loss = F.binary_cross_entropy_with_logits(logits, is_fraud, pos_weight=self.pos_weight)
        f1, false_alarms = binary_f1(logits.detach(), is_fraud)  # fault: harmonic-mean-of-one
        return loss, f1, false_alarms


def example():
    torch.manual_seed(8)
    return torch.randn(16, 12), (torch.rand(16) < 0.3).float()
