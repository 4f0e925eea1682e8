"""Multi-label audio tagging with attention pooling over time.

CORRECT: unusual, and as it is meant.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class AttBlock(nn.Module):
    """Class-wise attention pooling as in the PANNs / SED baselines."""

    def __init__(self, d_in, n_tags):
        super().__init__()
        self.att = nn.Conv1d(d_in, n_tags, 1)
        self.cla = nn.Conv1d(d_in, n_tags, 1)

    def forward(self, x):
        att = self.att(x).permute(0, 2, 1)
        cla = self.cla(x).permute(0, 2, 1)
        w = torch.softmax(att, dim=1)
        return torch.einsum("btk,btk->bk", w, cla)


class Step(nn.Module):
    def __init__(self, n_mels=20, n_tags=9):
        super().__init__()
        self.conv = nn.Conv1d(n_mels, 32, kernel_size=3, padding=1)
        self.head = AttBlock(32, n_tags)
        self.register_buffer("pos_weight", torch.full((n_tags,), 3.0))

    def forward(self, mel, tags):
        db = 10.0 * torch.log10(mel.clamp(min=1e-10))
        db = (db + 40.0) / 40.0
        logits = self.head(F.relu(self.conv(db)))
        return F.binary_cross_entropy_with_logits(logits, tags, pos_weight=self.pos_weight)


def example():
    g = torch.Generator().manual_seed(30)
    mel = torch.rand(4, 20, 16, generator=g) ** 4 * 10
    return mel, (torch.rand(4, 9, generator=g) < 0.2).float()
