"""Search ranknet.

CORRECT: all pairs inside a query.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    """RankNet on all document pairs of one query list: feats [Q, L, F], rel [Q, L]."""

    def __init__(self, n_feat=46):
        super().__init__()
        self.scorer = nn.Sequential(nn.Linear(n_feat, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, feats, rel, valid):
        s = self.scorer(feats).squeeze(-1)
        ds = s.unsqueeze(2) - s.unsqueeze(1)
        dr = rel.unsqueeze(2) - rel.unsqueeze(1)
        pair = (dr > 0).float() * valid.unsqueeze(2) * valid.unsqueeze(1)
        loss = F.softplus(-ds) * pair
        return loss.sum() / pair.sum().clamp(min=1.0)


def example():
    torch.manual_seed(0)
    valid = (torch.arange(20)[None] < torch.randint(8, 21, (6, 1))).float()
    return torch.randn(6, 20, 46), torch.randint(0, 5, (6, 20)).float(), valid
