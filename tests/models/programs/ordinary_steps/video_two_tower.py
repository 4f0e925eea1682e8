"""Trains a two-tower video retrieval model by an in-batch softmax with a popularity correction and accidental hits masked."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, videos=90):
        super().__init__()
        self.user_tower = nn.Sequential(nn.Linear(22, 32), nn.ReLU(), nn.Linear(32, 12))
        self.video_emb = nn.Embedding(videos, 12)
        freq = torch.arange(1, videos + 1).float().reciprocal()
        self.register_buffer("log_q", (freq / freq.sum()).log())

    def forward(self, user_feats, video_id):
        u = F.normalize(self.user_tower(user_feats), dim=1)
        v = F.normalize(self.video_emb(video_id), dim=1)
        logits = u.matmul(v.transpose(0, 1)) / 0.05
        logits = logits - self.log_q[video_id].unsqueeze(0)
        diag = torch.eye(u.size(0), dtype=torch.bool, device=u.device)
        twin = (video_id.unsqueeze(0) == video_id.unsqueeze(1)) & ~diag
        logits = logits.masked_fill(twin, -1e9)
        return F.cross_entropy(logits, torch.arange(u.size(0), device=u.device))


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(26, 22), torch.randint(0, 90, (26,)))
