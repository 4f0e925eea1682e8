"""Entropy bonus added to the loss.

MISTAKE (silent), found by entropy-lowered.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.pi = nn.Linear(6, 4); self.v = nn.Linear(6, 1)

    def forward(self, s, a, returns):
        lp = F.log_softmax(self.pi(s), -1); v = self.v(s).squeeze(-1)
        adv = (returns - v).detach()
        pg = -(lp.gather(1, a[:, None]).squeeze(1) * adv).mean()
        ent = -(lp.exp() * lp).sum(-1).mean()  # fault: entropy-lowered
        return pg + 0.5 * F.mse_loss(v, returns) + 0.01 * ent


def example():
    torch.manual_seed(0)
    return (torch.randn(7, 6), torch.randint(0, 4, (7,)), torch.randn(7),)
