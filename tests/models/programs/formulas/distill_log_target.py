"""Knowledge distillation.  The teacher side is given as log-probabilities but log_target is left False.

kl_div then computes t*(log t - s) with t = log-probability (negative): log of a negative number, the
term is nan / dropped.  Fix: log_target=True.
"""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    def __init__(self, T=4.0):
        super().__init__()
        self.student = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 5))
        self.T = T

    def kd(self, s, t):
        return F.kl_div(F.log_softmax(s / self.T, 1), F.log_softmax(t / self.T, 1), reduction="batchmean")

    def forward(self, x, teacher_logits, y):
        s = self.student(x)
        return 0.5 * F.cross_entropy(s, y) + 0.5 * self.T ** 2 * self.kd(s, teacher_logits)  # fault: invalid-domain logits-into-probability-loss


class Fixed(Step):
    def kd(self, s, t):
        return F.kl_div(F.log_softmax(s / self.T, 1), F.log_softmax(t / self.T, 1), reduction="batchmean", log_target=True)


def example():
    torch.manual_seed(2)
    return torch.randn(8, 10), torch.randn(8, 5), torch.randint(0, 5, (8,))
