import math

import torch
from torch import nn


class DDPM(nn.Module):
    def __init__(self, T=1000):
        super().__init__()
        self.T = T
        self.net = nn.Sequential(nn.Linear(3, 32), nn.SiLU(), nn.Linear(32, 2))

    def forward(self, x0, t, noise):
        s = t // self.T  # fault: no-rule
        s = s.to(x0.dtype).unsqueeze(1)
        a = torch.cos(0.5 * math.pi * s)
        b = torch.sin(0.5 * math.pi * s)
        xt = a * x0 + b * noise
        return (self.net(torch.cat([xt, s], 1)) - noise).square().mean()


def example():
    return (torch.randn(16, 2), torch.randint(0, 1000, (16,)), torch.randn(16, 2))


Step = DDPM
OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]
