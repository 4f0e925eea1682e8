"""Diffusion of motion sequences with v-prediction and a cosine schedule.

CORRECT: the target is alpha * noise - sigma * x0, not the noise; alpha = cos, sigma = sin need no square root; the denoiser sees all frames.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class MotionDenoiser(nn.Module):
    def __init__(self, joints=9, width=20):
        super().__init__()
        self.inp = nn.Conv1d(joints, width, 3, padding=1)
        self.time = nn.Linear(2, width)
        self.mid = nn.Conv1d(width, width, 3, padding=1)
        self.out = nn.Conv1d(width, joints, 1)

    def forward(self, x, angle):
        emb = self.time(torch.stack([angle.sin(), angle.cos()], dim=-1))
        h = F.silu(self.inp(x.transpose(1, 2)) + emb.unsqueeze(-1))
        h = h + F.silu(self.mid(h))
        return self.out(h).transpose(1, 2)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = MotionDenoiser()

    def forward(self, x0, t):
        angle = 0.5 * math.pi * t
        alpha = torch.cos(angle)[:, None, None]
        sigma = torch.sin(angle)[:, None, None]
        noise = torch.randn_like(x0)
        x_t = alpha * x0 + sigma * noise
        v = alpha * noise - sigma * x0
        return F.mse_loss(self.model(x_t, angle), v)


def example():
    g = torch.Generator().manual_seed(1)
    return (torch.randn(6, 16, 9, generator=g), torch.rand(6, generator=g))


OPEN = [{0: "batch"}, {0: "batch"}]
