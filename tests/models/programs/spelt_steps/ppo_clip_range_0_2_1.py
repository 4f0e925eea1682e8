"""PPO clip range 0.2 .. 1.2 written clamp(ratio, 1 - eps, eps).

MISTAKE (silent), found by misbuilt-ratio.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.pi = nn.Linear(6, 4)

    def forward(self, s, a, old, adv):
        logp = F.log_softmax(self.pi(s), -1).gather(1, a[:, None]).squeeze(1)
        ratio = torch.exp(logp - old)
        return -torch.min(ratio * adv, torch.clamp(ratio, -0.2, 0.2) * adv).mean()  # fault: misbuilt-ratio


def example():
    torch.manual_seed(0)
    return (torch.randn(7, 6), torch.randint(0, 4, (7,)), -torch.rand(7), torch.randn(7),)
