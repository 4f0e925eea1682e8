"""Distillation of a bird-song classifier with hard labels.

CORRECT: softened log-probabilities of student and teacher with log_target=True, batchmean and the T^2 factor; softmax is not fed to cross_entropy.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SongNet(nn.Module):
    def __init__(self, width, bands=16, species=12):
        super().__init__()
        self.conv = nn.Conv1d(bands, width, 5, padding=2)
        self.fc = nn.Linear(2 * width, species)

    def forward(self, spec):
        h = F.relu(self.conv(spec))
        return self.fc(torch.cat([h.mean(-1), h.amax(-1)], dim=1))


class Step(nn.Module):
    def __init__(self, T=3.0, lam=0.5):
        super().__init__()
        self.student = SongNet(8)
        self.teacher = SongNet(24)
        self.teacher.requires_grad_(False)
        self.T, self.lam = T, lam

    def forward(self, spec, species):
        s = self.student(spec)
        t = self.teacher(spec).detach()
        log_p = F.log_softmax(s / self.T, dim=-1)
        log_q = F.log_softmax(t / self.T, dim=-1)
        kd = F.kl_div(log_p, log_q, reduction="batchmean", log_target=True) * self.T * self.T
        ce = F.cross_entropy(s, species)
        return self.lam * kd + (1.0 - self.lam) * ce


def example():
    g = torch.Generator().manual_seed(1)
    return (torch.randn(5, 16, 30, generator=g), torch.randint(0, 12, (5,), generator=g))


OPEN = [{0: "batch"}, {0: "batch"}]
