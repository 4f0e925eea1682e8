"""Mnist conv.

MISTAKE (silent): nll_loss needs log-probabilities, output is softmax (use log_softmax).
"""
from __future__ import print_function
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 10, kernel_size=3)
        self.conv2 = nn.Conv2d(10, 20, kernel_size=3)
        self.conv2_drop = nn.Dropout2d()
        self.fc1 = nn.Linear(20 * 2 * 2, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2_drop(self.conv2(x)), 2))
        x = x.view(-1, 20 * 2 * 2)
        x = F.relu(self.fc1(x))
        x = self.fc2(x)
        return F.softmax(x, dim=1)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = Net()

    def forward(self, data, target):
        output = self.model(data)
        loss = F.nll_loss(output, target)  # fault: probabilities-into-logit-loss
        return loss


def example():
    g = torch.Generator().manual_seed(13)
    return torch.randn(8, 1, 14, 14, generator=g), torch.randint(0, 10, (8,), generator=g)
