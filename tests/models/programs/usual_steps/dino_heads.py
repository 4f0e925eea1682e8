"""Dino heads.

CORRECT: batch mean of the teacher is the centering statistic.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Head(nn.Module):
    def __init__(self, d_in=26, d_out=35):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(d_in, 40), nn.GELU(), nn.Linear(40, 16))
        self.last = nn.Linear(16, d_out, bias=False)

    def forward(self, x):
        return self.last(F.normalize(self.mlp(x), dim=-1))


class Step(nn.Module):
    """Returns the loss and the new center for the running average."""

    def __init__(self, d_out=35, momentum=0.9):
        super().__init__()
        self.student, self.teacher = Head(d_out=d_out), Head(d_out=d_out)
        self.register_buffer("center", torch.zeros(1, d_out))
        self.momentum = momentum

    def forward(self, global_crop, local_crop):
        s = self.student(local_crop) / 0.1
        with torch.no_grad():
            t_out = self.teacher(global_crop)
            t = F.softmax((t_out - self.center) / 0.04, dim=-1)
            new_center = self.momentum * self.center + (1 - self.momentum) * t_out.mean(dim=0, keepdim=True)
        loss = torch.sum(-t * F.log_softmax(s, dim=-1), dim=-1).mean()
        return loss, new_center


def example():
    torch.manual_seed(0)
    return torch.randn(21, 26), torch.randn(21, 26)
