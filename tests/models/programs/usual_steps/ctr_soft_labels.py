"""Ctr soft labels.

MISTAKE (silent): the rate is a fraction in [0,1], long() makes it 0 nearly everywhere.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class CTRModel(nn.Module):
    def __init__(self, n_items=200, n_dense=9, dim=14):
        super().__init__()
        self.item = nn.Embedding(n_items, dim)
        self.dense = nn.Linear(n_dense, dim)
        self.mlp = nn.Sequential(nn.Linear(2 * dim, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, item_id, dense):
        z = torch.cat([self.item(item_id), F.relu(self.dense(dense))], dim=-1)
        return self.mlp(z).squeeze(-1)


class Step(nn.Module):
    """Labels are observed click rates (clicks / impressions) per item and slot."""

    def __init__(self):
        super().__init__()
        self.model = CTRModel()

    def forward(self, item_id, dense, clicks, impressions):
        rate = clicks.float() / impressions.float()
        target = rate.long()  # fault: target-cut-to-integers
        logits = self.model(item_id, dense)
        loss = F.binary_cross_entropy_with_logits(logits, target.float())
        return loss


def example():
    torch.manual_seed(0)
    imp = torch.randint(20, 90, (24,))
    clicks = (imp * torch.rand(24)).long()
    return torch.randint(0, 200, (24,)), torch.randn(24, 9), clicks, imp
