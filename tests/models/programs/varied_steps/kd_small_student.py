"""Knowledge distillation: a narrow student follows a wide teacher at temperature 4, plus the ordinary label loss.

MISTAKE (silent): F.kl_div wants log-probabilities as its first argument and gets the student's raw scaled logits; log_softmax is missing.
"""
import torch
from torch import nn
import torch.nn.functional as F


def mlp(width):
    return nn.Sequential(nn.Linear(24, width), nn.ReLU(), nn.Linear(width, 10))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.teacher, self.student = mlp(64), mlp(12)
        for p in self.teacher.parameters():
            p.requires_grad_(False)
        self.T, self.alpha = 4.0, 0.7

    def soften(self, logits):
        return logits / self.T

    def forward(self, x, y):
        with torch.no_grad():
            t = self.teacher(x)
        s = self.student(x)
        soft = F.kl_div(self.soften(s), F.softmax(t / self.T, dim=-1), reduction="batchmean")  # fault: logits-into-probability-loss
        hard = F.cross_entropy(s, y)
        return self.alpha * self.T ** 2 * soft + (1 - self.alpha) * hard


class Fixed(Step):
    def soften(self, logits):
        return F.log_softmax(logits / self.T, dim=-1)


def example():
    torch.manual_seed(5)
    return torch.randn(6, 24), torch.randint(0, 10, (6,))


OPEN = [{0: "batch"}, {0: "batch"}]
