"""Churn model with BCE on logits; the step also returns the F1 score of the positive class.

MISTAKE (silent): the logit is thresholded at 0.5 (a probability of 0.62); it must be sigmoid(logit) > 0.5, i.e. logit > 0.
"""
import torch
import torch.nn as nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0))
        self.criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(3.0))

    def forward(self, features, churned):
        score = self.model(features)
        loss = self.criterion(score, churned)
        pred = (score > 0.5).float()  # fault: probability-threshold-on-scores
        tp = (pred * churned).sum()
        f1 = 2 * tp / (pred.sum() + churned.sum() + 1e-8)
        return loss, f1


class Fixed(Step):
    def forward(self, features, churned):
        score = self.model(features)
        loss = self.criterion(score, churned)
        pred = (torch.sigmoid(score) > 0.5).float()
        tp = (pred * churned).sum()
        f1 = 2 * tp / (pred.sum() + churned.sum() + 1e-8)
        return loss, f1


def example():
    torch.manual_seed(10)
    return 2 * torch.randn(8, 10), torch.tensor([1., 0, 1, 0, 0, 1, 1, 0])
