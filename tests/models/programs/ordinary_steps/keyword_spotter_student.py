"""Distils a keyword spotter into a smaller one. kl_div is given the student's probabilities although it expects log-probabilities; the student should go through log_softmax."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.T = 3.0
        self.teacher = nn.Sequential(nn.Linear(35, 64), nn.ReLU(), nn.Linear(64, 11))
        self.student = nn.Sequential(nn.Linear(35, 12), nn.ReLU(), nn.Linear(12, 11))

    def forward(self, mfcc, keyword):
        with torch.no_grad():
            t_logits = self.teacher(mfcc)
        s_logits = self.student(mfcc)
        soft = F.kl_div(  # fault: probabilities-into-logit-loss
            F.softmax(s_logits / self.T, dim=1),  # fault: probabilities-into-logit-loss
            F.softmax(t_logits / self.T, dim=1),
            reduction="batchmean",
        )
        hard = F.cross_entropy(s_logits, keyword)
        return 0.7 * soft * self.T ** 2 + 0.3 * hard


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(17, 35), torch.randint(0, 11, (17,)))
