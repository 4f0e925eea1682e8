"""Toy diffusion on 2-d points: an MLP gets the noisy point and the fraction of the schedule that has gone by.

MISTAKE (silent): t is an integer tensor below T, so t // T is always 0 and the network never learns about time. It should be t / T.
"""
import math
import torch
from torch import nn

T = 50


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        s = torch.arange(T + 1) / T
        f = torch.cos((s + 0.008) / 1.008 * math.pi / 2) ** 2
        self.register_buffer("ab", (f / f[0])[1:].clamp(min=1e-4))
        self.net = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 2))

    def forward(self, pts, steps, eps):
        t = steps.clamp(0, T - 1)
        a = self.ab[t][:, None]
        noisy = a.sqrt() * pts + (1.0 - a).sqrt() * eps
        tau = (t // T).to(pts.dtype).unsqueeze(1)  # fault: quotient-always-zero
        guess = self.net(torch.cat((noisy, tau), dim=1))
        return ((guess - eps) ** 2).sum(1).mean()


class Fixed(Step):
    def forward(self, pts, steps, eps):
        t = steps.clamp(0, T - 1)
        a = self.ab[t][:, None]
        noisy = a.sqrt() * pts + (1.0 - a).sqrt() * eps
        tau = (t / T).to(pts.dtype).unsqueeze(1)
        guess = self.net(torch.cat((noisy, tau), dim=1))
        return ((guess - eps) ** 2).sum(1).mean()


def example():
    torch.manual_seed(11)
    return torch.randn(8, 2), torch.randint(0, T, (8,)), torch.randn(8, 2)


OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]
