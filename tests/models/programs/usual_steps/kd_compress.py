"""Kd compress.

MISTAKE (silent): kl_div needs log-probabilities as input, got softmax.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


def make_mlp(sizes):
    layers = []
    for i, (a, b) in enumerate(zip(sizes[:-1], sizes[1:])):
        layers.append(nn.Linear(a, b))
        if i < len(sizes) - 2:
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


class Step(nn.Module):
    def __init__(self, T=4.0, alpha=0.7):
        super().__init__()
        self.student = make_mlp([25, 32, 13])
        self.teacher = make_mlp([25, 96, 96, 13])
        for p in self.teacher.parameters():
            p.requires_grad_(False)
        self.T, self.alpha = T, alpha

    def forward(self, x, labels):
        student_logits = self.student(x)
        with torch.no_grad():
            teacher_logits = self.teacher(x)
        soft_student = F.softmax(student_logits / self.T, dim=1)
        soft_teacher = F.softmax(teacher_logits / self.T, dim=1)
        distill = F.kl_div(soft_student, soft_teacher, reduction="batchmean") * self.T ** 2  # fault: probabilities-into-logit-loss
        hard = F.cross_entropy(student_logits, labels)
        return self.alpha * distill + (1 - self.alpha) * hard


def example():
    torch.manual_seed(0)
    return torch.randn(19, 25), torch.randint(0, 13, (19,))
