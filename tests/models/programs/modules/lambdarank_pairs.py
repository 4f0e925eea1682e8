"""LambdaRank with delta-NDCG weights: ranks are one-based (2 + arange in the log), pairs by broadcasting,
ideal DCG clamped; the weights are built under no_grad."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(7, 10), nn.ReLU(), nn.Linear(10, 1, bias=False))

    def forward(self, docs, rel):
        s = self.score(docs).squeeze(-1)
        with torch.no_grad():
            rank = s.argsort(1, descending=True).argsort(1)
            disc = 1.0 / torch.log2(rank.float() + 2.0)
            gain = torch.pow(2.0, rel.float()) - 1
            top = rel.float().sort(1, descending=True)[0]
            ideal = ((torch.pow(2.0, top) - 1) / torch.log2(torch.arange(rel.size(1)) + 2.0)).sum(1)
            w = (gain[:, :, None] - gain[:, None, :]).abs() * (disc[:, :, None] - disc[:, None, :]).abs()
            w = w / ideal.clamp(min=1e-3)[:, None, None]
        better = (rel[:, :, None] > rel[:, None, :]).float()
        pair = F.softplus(-(s[:, :, None] - s[:, None, :]))
        return (w * better * pair).sum((1, 2)).mean()


def example():
    torch.manual_seed(75)
    return torch.randn(3, 6, 7), torch.randint(0, 4, (3, 6))
