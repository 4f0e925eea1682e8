"""(1 - done) missing, double DQN.

MISTAKE (silent), found by episodes-never-end.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(6, 4); self.t = nn.Linear(6, 4)

    def forward(self, s, a, r, s2, done):
        q = self.q(s).gather(1, a[:, None]).squeeze(1)
        with torch.no_grad():
            best = self.q(s2).argmax(1, keepdim=True)
            nxt = self.t(s2).gather(1, best).squeeze(1)
            y = r + 0.99 * nxt
        return F.mse_loss(q, y)  # fault: episodes-never-end


def example():
    torch.manual_seed(0)
    return (torch.randn(7, 6), torch.randint(0, 4, (7,)), torch.randn(7), torch.randn(7, 6), torch.zeros(7),)
