"""Chest findings.

MISTAKE (silent): scores are sigmoid outputs, sigmoid applied twice.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

FINDINGS = 14


class Encoder(nn.Module):
    def __init__(self, dim=30):
        super().__init__()
        self.stem = nn.Conv2d(1, dim, 7, stride=4, padding=3)
        self.mid = nn.Conv2d(dim, dim, 3, stride=2, padding=1)

    def forward(self, x):
        x = F.gelu(self.stem(x))
        x = F.gelu(self.mid(x))
        return x.mean(dim=(2, 3))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.head = nn.Linear(30, FINDINGS)
        self.register_buffer("pos_weight", torch.linspace(1.0, 6.0, FINDINGS))

    def predict(self, x):
        return self.head(self.encoder(x)).sigmoid()

    def forward(self, xray, findings):
        scores = self.predict(xray)
        loss = F.binary_cross_entropy_with_logits(scores, findings, pos_weight=self.pos_weight)  # fault: probabilities-into-logit-loss
        return loss


def example():
    torch.manual_seed(0)
    return torch.randn(4, 1, 64, 64), (torch.rand(4, FINDINGS) < 0.3).float()
