"""Churn.

MISTAKE (silent): sigmoid output goes into BCEWithLogitsLoss, which applies sigmoid again.
"""
import torch
import torch.nn as nn


class ChurnClassifier(nn.Module):
    def __init__(self, in_features=14, hidden=32):
        super().__init__()
        self.layer_1 = nn.Linear(in_features, hidden)
        self.layer_2 = nn.Linear(hidden, hidden)
        self.layer_out = nn.Linear(hidden, 1)
        self.relu = nn.ReLU()
        self.dropout = nn.Dropout(p=0.1)
        self.batchnorm1 = nn.BatchNorm1d(hidden)

    def forward(self, inputs):
        x = self.relu(self.layer_1(inputs))
        x = self.batchnorm1(x)
        x = self.relu(self.layer_2(x))
        x = self.dropout(x)
        return torch.sigmoid(self.layer_out(x))  # fault: probabilities-into-logit-loss


def binary_acc(y_prob, y_test):
    return (torch.round(y_prob) == y_test).float().mean()


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = ChurnClassifier()
        self.criterion = nn.BCEWithLogitsLoss()

    def forward(self, features, churned):
        target = churned.unsqueeze(1).float()
        y_pred = self.model(features)
        loss = self.criterion(y_pred, target)  # fault: probabilities-into-logit-loss
        return loss, binary_acc(y_pred, target)


def example():
    g = torch.Generator().manual_seed(12)
    return torch.randn(16, 14, generator=g), torch.randint(0, 2, (16,), generator=g)
