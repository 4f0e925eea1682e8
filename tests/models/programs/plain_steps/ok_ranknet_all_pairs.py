import torch
import torch.nn.functional as F
from torch import nn


class RankNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.scorer = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, docs, relevance):
        s = self.scorer(docs)                                   # [N, 1]
        s_diff = s - s.t()
        better = (relevance.unsqueeze(1) > relevance.unsqueeze(0)).float()
        loss = F.softplus(-s_diff) * better
        return loss.sum() / better.sum().clamp(min=1.0)


def example():
    return (torch.randn(10, 12), torch.randint(0, 4, (10,)))


Step = RankNet
