"""Balanced logreg.

MISTAKE (silent): integer division, all frequencies are 0 and all weights equal 1.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

NUM_CLASSES = 6


def class_weights(labels, num_classes):
    counts = F.one_hot(labels, num_classes).sum(dim=0)
    freq = counts // counts.sum()  # fault: quotient-always-zero
    return 1.0 - freq.float()


class Step(nn.Module):
    def __init__(self, n_features=21):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Linear(n_features, 33),
            nn.LayerNorm(33),
            nn.SiLU(),
        )
        self.head = nn.Linear(33, NUM_CLASSES)

    def forward(self, x, labels):
        logits = self.head(self.backbone(x))
        w = class_weights(labels, NUM_CLASSES)  # fault: quotient-always-zero
        log_p = F.log_softmax(logits, dim=-1)
        nll = -log_p.gather(1, labels.unsqueeze(1)).squeeze(1)
        sample_w = w[labels]
        return (nll * sample_w).sum() / sample_w.sum()


def example():
    torch.manual_seed(0)
    labels = torch.multinomial(torch.tensor([0.5, 0.2, 0.1, 0.1, 0.05, 0.05]), 40, replacement=True)
    return torch.randn(40, 21), labels
