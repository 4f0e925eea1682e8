"""Knowledge distillation of a small student from a frozen teacher.

MISTAKE (silent): kl_div expects log-probabilities as its first argument and gets softmax probabilities;
log_softmax is needed for the student.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


def mlp(sizes):
    layers = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Step(nn.Module):
    def __init__(self, temperature=3.0, alpha=0.7):
        super().__init__()
        self.teacher = mlp([20, 48, 48, 8])
        self.student = mlp([20, 16, 8])
        self.T = temperature
        self.alpha = alpha
        for p in self.teacher.parameters():
            p.requires_grad_(False)

    def forward(self, x, y):
        with torch.no_grad():
            t_logits = self.teacher(x)
        s_logits = self.student(x)
        soft = F.kl_div(  # fault: probabilities-into-logit-loss
            F.softmax(s_logits / self.T, dim=1),
            F.softmax(t_logits / self.T, dim=1),
            reduction="batchmean",
        ) * (self.T ** 2)
        hard = F.cross_entropy(s_logits, y)
        return self.alpha * soft + (1.0 - self.alpha) * hard


class Fixed(Step):
    def forward(self, x, y):
        with torch.no_grad():
            t_logits = self.teacher(x)
        s_logits = self.student(x)
        soft = F.kl_div(
            F.log_softmax(s_logits / self.T, dim=1),
            F.softmax(t_logits / self.T, dim=1),
            reduction="batchmean",
        ) * (self.T ** 2)
        hard = F.cross_entropy(s_logits, y)
        return self.alpha * soft + (1.0 - self.alpha) * hard


def example():
    g = torch.Generator().manual_seed(1)
    return torch.randn(6, 20, generator=g), torch.randint(0, 8, (6,), generator=g)


OPEN = [{0: "batch"}, {0: "batch"}]
