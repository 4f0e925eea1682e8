"""Mil noisy or.

CORRECT: noisy-OR MIL with logsigmoid(-x), masked with 0 (log 1), BCE on probability.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    """Multiple instance learning: a slide is positive iff any of its tiles is (noisy-OR)."""

    def __init__(self, feat=14):
        super().__init__()
        self.tile = nn.Sequential(nn.Linear(feat, 24), nn.ReLU(), nn.Linear(24, 1))
        nn.init.constant_(self.tile[-1].bias, -3.0)

    def forward(self, tiles, n_tiles, slide_label):
        logit = self.tile(tiles).squeeze(-1)                          # (B, N)
        present = torch.arange(tiles.size(1), device=tiles.device) < n_tiles.unsqueeze(1)
        # log(1 - sigmoid(x)) = logsigmoid(-x); absent tiles contribute log 1 = 0
        log_neg = F.logsigmoid(-logit).masked_fill(~present, 0.0)
        p_bag = 1.0 - log_neg.sum(dim=1).exp()
        p_bag = p_bag.clamp(1e-6, 1 - 1e-6)
        loss = F.binary_cross_entropy(p_bag, slide_label.float())
        top_tile = logit.masked_fill(~present, float("-inf")).argmax(dim=1)
        return loss, top_tile


def example():
    g = torch.Generator().manual_seed(38)
    return torch.randn(4, 9, 14, generator=g), torch.tensor([9, 4, 7, 6]), torch.tensor([1, 0, 0, 1])
