"""Trains a ListNet ranker of the hotels shown for a search. The log-softmax of the scores runs over the queries in the batch (dim 0) and not over the hotels of a list; it should be dim 1."""
import torch
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.query = nn.Linear(6, 24)
        self.hotel = nn.Linear(13, 24)
        self.score = nn.Linear(24, 1)

    def forward(self, query, hotels, relevance):
        joint = torch.relu(self.query(query).unsqueeze(1) + self.hotel(hotels))
        scores = self.score(joint).squeeze(2)
        target = torch.softmax(relevance, dim=1)
        log_p = torch.log_softmax(scores, dim=0)  # fault: softmax-over-batch-axis
        return -(target * log_p).sum(dim=1).mean()


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(8, 6), torch.randn(8, 15, 13), torch.randint(0, 5, (8, 15)).float())
