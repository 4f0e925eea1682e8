"""Trains a logo retrieval encoder by momentum contrast with a queue of negative keys, the positive key being column zero."""
import torch
import torch.nn as nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, dim=12, queue=50):
        super().__init__()
        self.encoder_q = nn.Sequential(nn.Linear(25, 32), nn.ReLU(), nn.Linear(32, dim))
        self.encoder_k = nn.Sequential(nn.Linear(25, 32), nn.ReLU(), nn.Linear(32, dim))
        keys = torch.randn(dim, queue)
        self.register_buffer("queue", nn.functional.normalize(keys, dim=0))
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, im_q, im_k):
        q = nn.functional.normalize(self.encoder_q(im_q), dim=1)
        k = nn.functional.normalize(self.encoder_k(im_k), dim=1).detach()
        l_pos = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
        l_neg = torch.einsum("nc,ck->nk", [q, self.queue])
        logits = torch.cat([l_pos, l_neg], dim=1) / 0.07
        labels = torch.zeros(logits.shape[0], dtype=torch.long)
        return self.criterion(logits, labels)


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(15, 25), torch.randn(15, 25))
