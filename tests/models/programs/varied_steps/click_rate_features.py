"""Tabular ad model: the historic click rate (clicks / views, integer counts) and dense features predict a bid price.

MISTAKE (silent): // on integer counts floors the rate to 0 (clicks < views) and the feature is dead; use a true division.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 32)
        self.fc2 = nn.Linear(32, 1)

    def forward(self, clicks, views, dense, bid):
        ctr = clicks // views.clamp(min=1)  # fault: quotient-always-zero
        feats = torch.cat([ctr.unsqueeze(1).float(), dense], 1)
        pred = self.fc2(F.relu(self.fc1(feats))).squeeze(1)
        return F.l1_loss(pred, bid)


class Fixed(Step):
    def forward(self, clicks, views, dense, bid):
        ctr = clicks / views.clamp(min=1)
        feats = torch.cat([ctr.unsqueeze(1).float(), dense], 1)
        pred = self.fc2(F.relu(self.fc1(feats))).squeeze(1)
        return F.l1_loss(pred, bid)


def example():
    torch.manual_seed(6)
    views = torch.randint(50, 500, (7,))
    return (views * torch.rand(7)).long(), views, torch.randn(7, 5), torch.rand(7)


OPEN = [{0: "rows"}, {0: "rows"}, {0: "rows"}, {0: "rows"}]
