"""Trains a web document scorer with the ListNet loss. Prediction and target are swapped: the loss is the cross entropy of the predicted distribution against the log of the relevance distribution; it should be -softmax(relevance) * log_softmax(scores)."""
import torch
import torch.nn.functional as F
from torch import nn


def list_cross_entropy(p_logits, q_logits):
    p = torch.softmax(p_logits, dim=-1)
    log_q = torch.log_softmax(q_logits, dim=-1)
    return -(p * log_q).sum(dim=-1)


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.scorer = nn.Sequential(nn.Linear(46, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, docs, relevance):
        scores = self.scorer(docs).squeeze(-1)
        return list_cross_entropy(scores, relevance).mean()  # fault: swapped-loss-sides


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(5, 12, 46), torch.randint(0, 5, (5, 12)).float())
