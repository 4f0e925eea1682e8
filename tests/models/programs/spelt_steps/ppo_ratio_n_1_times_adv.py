"""PPO ratio [N,1] times adv [N].

MISTAKE (silent), found by silent-broadcast-in-loss.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.pi = nn.Linear(8, 3)

    def forward(self, s, a, old, adv):
        logp = torch.log_softmax(self.pi(s), 1).gather(1, a)
        ratio = (logp - old).exp()  # fault: silent-broadcast-in-loss
        return -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()


def example():
    torch.manual_seed(0)
    return (torch.randn(7, 8), torch.randint(0, 3, (7, 1)), torch.randn(7)-2, torch.randn(7),)
