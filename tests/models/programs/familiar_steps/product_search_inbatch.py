"""Trains query and product towers with in-batch negatives in both directions; other rows with the same product are left out of the negatives."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.query_bag = nn.EmbeddingBag(300, 16, mode="mean")
        self.product_net = nn.Sequential(nn.Linear(25, 32), nn.Tanh(), nn.Linear(32, 16))
        self.crit = nn.CrossEntropyLoss()

    def forward(self, query_tokens, product_features, product_id):
        q = F.normalize(self.query_bag(query_tokens), dim=1)
        p = F.normalize(self.product_net(product_features), dim=1)
        scores = torch.einsum("qd,pd->qp", q, p) * 20.0
        b = scores.shape[0]
        duplicate = product_id[:, None] == product_id[None, :]
        duplicate = duplicate & ~torch.eye(b, dtype=torch.bool)
        scores = scores.masked_fill(duplicate, -1e4)
        gold = torch.arange(b)
        forward_loss = self.crit(scores, gold)
        backward_loss = self.crit(scores.T, gold)
        return 0.5 * forward_loss + 0.5 * backward_loss


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randint(0, 300, (9, 5)), torch.randn(9, 25), torch.tensor([4, 8, 15, 16, 23, 42, 4, 8, 99]))
