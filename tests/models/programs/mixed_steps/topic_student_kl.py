"""Distil the topic mixture of a big topic model into a bag-of-words student.

MISTAKE (silent): kl_div wants log-probabilities as its first argument and gets probabilities.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    T = 2.0

    def __init__(self, vocab=60, topics=10):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(vocab, 32), nn.Tanh(), nn.LayerNorm(32))
        self.topic = nn.Linear(32, topics)

    def mixture(self, z):
        return F.softmax(z / self.T, dim=1)  # fault: probabilities-into-logit-loss

    def forward(self, counts, teacher_logits):
        tf = torch.log1p(counts)
        z = self.topic(self.enc(tf))
        student = self.mixture(z)  # fault: probabilities-into-logit-loss
        teacher = F.softmax(teacher_logits / self.T, dim=1)
        return self.T ** 2 * F.kl_div(student, teacher, reduction="batchmean")  # fault: probabilities-into-logit-loss


class Fixed(Step):
    def mixture(self, z):
        return F.log_softmax(z / self.T, dim=1)


def example():
    torch.manual_seed(12)
    return torch.poisson(torch.full((5, 60), 0.7)), torch.randn(5, 10) * 3
