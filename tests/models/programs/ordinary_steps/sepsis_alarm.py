"""Trains a logistic early-warning score for sepsis from vital signs. The sigmoid is applied in the model and again inside binary_cross_entropy_with_logits; the loss should be given the raw logit."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(14)
        self.fc1 = nn.Linear(14, 40)
        self.fc2 = nn.Linear(40, 1)
        self.register_buffer("pos_weight", torch.tensor([6.0]))

    def risk(self, vitals):
        x = torch.tanh(self.fc1(self.norm(vitals)))
        return torch.sigmoid(self.fc2(x))  # fault: probabilities-into-logit-loss

    def forward(self, vitals, septic):
        risk = self.risk(vitals).squeeze(-1)  # fault: probabilities-into-logit-loss
        return F.binary_cross_entropy_with_logits(risk, septic, pos_weight=self.pos_weight)  # fault: probabilities-into-logit-loss


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(33, 14), (torch.rand(33) < 0.2).float())
