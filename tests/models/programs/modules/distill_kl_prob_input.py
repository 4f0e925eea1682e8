"""Hinton distillation with temperature.

F.kl_div wants log-probabilities as its first argument; it gets softmax.  The value is not
a divergence any more and its gradient does not pull the student to the teacher.
Fix: log_softmax for the student.
"""
import torch
import torch.nn.functional as F
from torch import nn

OPEN = [{0: "n"}, {0: "n"}, {0: "n"}]


class Step(nn.Module):
    def __init__(self, T=4.0, alpha=0.7):
        super().__init__()
        self.student = nn.Linear(30, 10)
        self.T, self.alpha = T, alpha

    def soft(self, s, t):
        q = F.softmax(t / self.T, dim=1)
        return F.kl_div(F.softmax(s / self.T, dim=1), q, reduction="batchmean")  # wrong: kl_div input not in log space

    def forward(self, x, teacher_logits, y):
        s = self.student(x)
        hard = F.cross_entropy(s, y)
        return self.alpha * self.T ** 2 * self.soft(s, teacher_logits) + (1 - self.alpha) * hard  # fault: probabilities-into-logit-loss


class Fixed(Step):
    def soft(self, s, t):
        return F.kl_div(F.log_softmax(s / self.T, dim=1), F.softmax(t / self.T, dim=1), reduction="batchmean")


def example():
    torch.manual_seed(6)
    return torch.randn(9, 30), torch.randn(9, 10), torch.randint(0, 10, (9,))
