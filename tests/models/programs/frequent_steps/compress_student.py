"""Knowledge distillation from a frozen teacher.

MISTAKE (silent): kl_div expects log-probabilities as its first argument.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


def mlp(hidden):
    return nn.Sequential(nn.Flatten(), nn.Linear(100, hidden), nn.ReLU(), nn.Linear(hidden, 10))


class Step(nn.Module):
    def __init__(self, T=3.0, alpha=0.7):
        super().__init__()
        self.teacher = mlp(128)
        self.student = mlp(24)
        for p in self.teacher.parameters():
            p.requires_grad_(False)
        self.T, self.alpha = T, alpha

    def forward(self, x, y):
        teacher_logits = self.teacher(x)
        student_logits = self.student(x)
        soft_targets = F.softmax(teacher_logits / self.T, dim=1)
        soft_prob = F.softmax(student_logits / self.T, dim=1)
        soft_loss = F.kl_div(soft_prob, soft_targets, reduction="batchmean") * self.T ** 2  # fault: probabilities-into-logit-loss
        hard_loss = F.cross_entropy(student_logits, y)
        return self.alpha * soft_loss + (1 - self.alpha) * hard_loss


def example():
    g = torch.Generator().manual_seed(19)
    return torch.randn(8, 1, 10, 10, generator=g), torch.randint(0, 10, (8,), generator=g)
