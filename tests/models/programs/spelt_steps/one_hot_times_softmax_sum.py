"""One-hot times softmax sum.

MISTAKE (silent), found by probabilities-into-logit-loss.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = nn.Linear(8, 4)

    def forward(self, x, y):
        p = torch.softmax(self.s(x), dim=-1)
        hot = F.one_hot(y, 4).float()
        return -torch.sum(hot * p) / x.shape[0]  # fault: probabilities-into-logit-loss


def example():
    torch.manual_seed(0)
    return (torch.randn(6, 8), torch.randint(0, 4, (6,)),)
