"""Returned without 1 -.

MISTAKE (silent), found by overlap-lowered.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(3, 1, 1)

    def forward(self, x, y):
        p = torch.sigmoid(self.c(x)).flatten(1); t = y.flatten(1)
        inter = (p * t).sum(1)
        return ((2 * inter + 1) / (p.sum(1) + t.sum(1) + 1)).mean()  # fault: overlap-lowered


def example():
    torch.manual_seed(0)
    return (torch.randn(2, 3, 6, 7), torch.randint(0, 2, (2, 1, 6, 7)).float(),)
