"""Binary focal written out with sigmoid applied twice.

MISTAKE (silent), found by probabilities-into-logit-loss.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(8, 1), nn.Sigmoid())

    def forward(self, x, y):
        z = self.fc(x).squeeze(-1)
        p = torch.sigmoid(z)  # fault: probabilities-into-logit-loss
        pt = p * y + (1 - p) * (1 - y)
        at = 0.75 * y + 0.25 * (1 - y)
        return (-at * (1 - pt) ** 2 * torch.log(pt.clamp(min=1e-6))).mean()


def example():
    torch.manual_seed(0)
    return (torch.randn(6, 8), torch.randint(0, 2, (6,)).float(),)
