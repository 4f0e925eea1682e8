"""Distill tiny resnet.

MISTAKE (silent): distillation: only the student is divided by the temperature.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


def small_cnn(width, n_classes):
    return nn.Sequential(
        nn.Conv2d(1, width, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(2 * width, n_classes),
    )


class Step(nn.Module):
    """Hinton-style distillation: soft targets of a frozen teacher + hard labels."""

    def __init__(self, n_classes=10, T=4.0, alpha=0.7):
        super().__init__()
        self.student = small_cnn(6, n_classes)
        self.teacher = small_cnn(24, n_classes).requires_grad_(False)
        self.T = T
        self.alpha = alpha

    def forward(self, x, y):
        s_logits = self.student(x)
        with torch.no_grad():
            t_logits = self.teacher(x)
        soft = F.kl_div(
            F.log_softmax(s_logits / self.T, dim=1),  # fault: uneven-temperature
            F.softmax(t_logits, dim=1),  # fault: uneven-temperature
            reduction="batchmean",
        ) * self.T ** 2
        hard = F.cross_entropy(s_logits, y)
        return self.alpha * soft + (1 - self.alpha) * hard, soft, hard


def example():
    g = torch.Generator().manual_seed(7)
    return torch.rand(5, 1, 14, 14, generator=g), torch.randint(0, 10, (5,), generator=g)
