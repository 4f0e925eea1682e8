"""Softmax dim=0 classes, nll of log.

MISTAKE (silent), found by softmax-over-batch-axis.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 4)

    def forward(self, x, y):
        p = torch.softmax(self.net(x), dim=0)  # fault: softmax-over-batch-axis
        return F.nll_loss(torch.log(p + 1e-8), y)


def example():
    torch.manual_seed(0)
    return (torch.randn(6, 8), torch.randint(0, 4, (6,)),)
