"""Dino views.

CORRECT: DINO: centred and sharpened teacher, different temperatures, soft cross-entropy.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Head(nn.Module):
    def __init__(self, din, k):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(din, 32), nn.GELU(), nn.Linear(32, 16))
        self.last = nn.Linear(16, k, bias=False)

    def forward(self, x):
        return self.last(F.normalize(self.mlp(x), dim=-1))


def backbone():
    return nn.Sequential(nn.Conv2d(3, 16, 4, 4), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())


class Step(nn.Module):
    """Self-distillation: the student matches the centred, sharpened teacher on the other view."""

    def __init__(self, k=40, ts=0.1, tt=0.04):
        super().__init__()
        self.student = nn.Sequential(backbone(), Head(16, k))
        self.teacher = nn.Sequential(backbone(), Head(16, k))
        self.teacher.load_state_dict(self.student.state_dict())
        for p in self.teacher.parameters():
            p.requires_grad = False
        self.register_buffer("center", torch.zeros(1, k))
        self.ts, self.tt = ts, tt

    def h(self, t, s):
        t = F.softmax((t - self.center) / self.tt, dim=1).detach()
        return -(t * F.log_softmax(s / self.ts, dim=1)).sum(dim=1).mean()

    def forward(self, view1, view2):
        s1, s2 = self.student(view1), self.student(view2)
        with torch.no_grad():
            t1, t2 = self.teacher(view1), self.teacher(view2)
        loss = self.h(t1, s2) / 2 + self.h(t2, s1) / 2
        new_center = 0.9 * self.center + 0.1 * torch.cat([t1, t2]).mean(dim=0, keepdim=True)
        return loss, new_center


def example():
    g = torch.Generator().manual_seed(12)
    return torch.randn(6, 3, 16, 16, generator=g), torch.randn(6, 3, 16, 16, generator=g)
