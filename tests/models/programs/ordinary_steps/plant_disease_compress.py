"""Distils a large plant disease classifier into a mobile one. The hand-written soft cross entropy lacks its minus sign, so the student is pushed away from the teacher; it should be negated."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def conv_net(width, classes):
    return nn.Sequential(
        nn.Conv2d(3, width, 3, stride=2), nn.ReLU(),
        nn.Conv2d(width, width, 3, stride=2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes),
    )


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, temperature=4.0, alpha=0.8):
        super().__init__()
        self.temperature, self.alpha = temperature, alpha
        self.teacher = conv_net(24, 8)
        self.student = conv_net(6, 8)

    def forward(self, image, disease):
        T = self.temperature
        teacher_out = self.teacher(image).detach()
        student_out = self.student(image)
        log_p = F.log_softmax(student_out / T, dim=-1)
        target = F.softmax(teacher_out / T, dim=-1)
        distill = torch.sum(target * log_p, dim=-1).mean() * (T * T)  # fault: one-sided-loss
        return self.alpha * distill + (1 - self.alpha) * F.cross_entropy(student_out, disease)


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(5, 3, 18, 18), torch.randint(0, 8, (5,)))
