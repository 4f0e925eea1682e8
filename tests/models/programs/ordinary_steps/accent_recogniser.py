"""Trains a classifier that tells the speaker's accent from a mel spectrogram. The log-softmax normalises over the batch axis (dim 0) and not over the accents; it should be dim 1."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, mels=20, accents=9):
        super().__init__()
        self.conv = nn.Conv1d(mels, 24, kernel_size=5, padding=2)
        self.proj = nn.Linear(48, accents)

    def forward(self, mel, accent):
        feats = F.gelu(self.conv(mel))
        pooled = torch.cat([feats.mean(-1), feats.amax(-1)], dim=-1)
        log_probs = F.log_softmax(self.proj(pooled), dim=0)  # fault: softmax-over-batch-axis
        rows = torch.arange(accent.size(0), device=accent.device)
        return -log_probs[rows, accent].mean()


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(14, 20, 50), torch.randint(0, 9, (14,)))
