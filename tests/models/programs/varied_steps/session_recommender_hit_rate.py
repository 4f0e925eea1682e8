"""Session-based recommender: GRU over clicked items, softmax over the catalogue; the step also reports hit-rate@3.

MISTAKE (silent): topk runs along dim 0 (the sessions), so the metric compares items with session numbers; topk(3, dim=1).
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, n_items=12, d=16):
        super().__init__()
        self.items = nn.Embedding(n_items, d)
        self.gru = nn.GRU(d, d, batch_first=True)

    def forward(self, clicks, target):
        out, _ = self.gru(self.items(clicks))
        scores = out[:, -1] @ self.items.weight.t()
        loss = F.cross_entropy(scores, target)
        best = scores.topk(3, dim=0).indices  # fault: index-of-other-axis
        hit = (best.t().unsqueeze(1) == target.view(1, -1, 1)).any(-1).float().mean()  # fault: index-of-other-axis
        return loss, hit


class Fixed(Step):
    def forward(self, clicks, target):
        out, _ = self.gru(self.items(clicks))
        scores = out[:, -1] @ self.items.weight.t()
        loss = F.cross_entropy(scores, target)
        best = scores.topk(3, dim=1).indices
        hit = (best == target.unsqueeze(1)).any(-1).float().mean()
        return loss, hit


def example():
    torch.manual_seed(61)
    return torch.randint(0, 12, (5, 6)), torch.randint(0, 12, (5,))
