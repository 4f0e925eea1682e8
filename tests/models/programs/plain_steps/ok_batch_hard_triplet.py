import torch
import torch.nn.functional as F
from torch import nn


class BatchHard(nn.Module):
    def __init__(self, margin=0.3):
        super().__init__()
        self.emb = nn.Linear(20, 8)
        self.margin = margin

    def forward(self, x, pid):
        e = self.emb(x)
        sq = e.pow(2).sum(1)
        d = (sq[:, None] + sq[None, :] - 2.0 * e @ e.t()).clamp(min=1e-12).sqrt()
        same = pid[:, None] == pid[None, :]
        hardest_pos = torch.where(same, d, torch.zeros_like(d)).max(dim=1)[0]
        hardest_neg = torch.where(same, torch.full_like(d, 1e9), d).min(dim=1)[0]
        return F.relu(hardest_pos - hardest_neg + self.margin).mean()


def example():
    return (torch.randn(12, 20), torch.arange(12) // 4)


Step = BatchHard
