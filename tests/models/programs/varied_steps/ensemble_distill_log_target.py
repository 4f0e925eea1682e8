"""A student is distilled from the geometric mean of three teachers.

CORRECT: the target of kl_div is in log space, which log_target=True says; the mean of log-probabilities is renormalised by a second log_softmax.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.student = nn.Sequential(nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 6))
        self.teachers = nn.ModuleList(nn.Linear(16, 6) for _ in range(3))

    def forward(self, x):
        with torch.no_grad():
            lt = torch.stack([F.log_softmax(t(x), dim=-1) for t in self.teachers]).mean(0)
            lt = F.log_softmax(lt, dim=-1)
        ls = F.log_softmax(self.student(x), dim=-1)
        return F.kl_div(ls, lt, log_target=True, reduction="batchmean")


def example():
    torch.manual_seed(2)
    return (torch.randn(7, 16),)


OPEN = [{0: "b"}]
