"""Focal loss for dense detection, modulating factor pt**gamma instead of (1 - pt)**gamma.

Easy examples (pt near 1) keep full weight and hard ones vanish: the reverse of focal loss.
Fix: (1 - pt).
"""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    def __init__(self, ncls=4, gamma=2.0, alpha=0.25):
        super().__init__()
        self.head = nn.Conv2d(6, ncls, 3, padding=1)
        self.g, self.al = gamma, alpha

    def factor(self, pt):
        return pt.pow(self.g)

    def forward(self, fmap, tgt):
        logit = self.head(fmap)
        ce = F.binary_cross_entropy_with_logits(logit, tgt, reduction="none")
        pt = torch.exp(-ce)
        at = self.al * tgt + (1 - self.al) * (1 - tgt)
        npos = tgt.sum().clamp(min=1)
        return (at * self.factor(pt) * ce).sum() / npos  # fault: one-sided-loss


class Fixed(Step):
    def factor(self, pt):
        return (1 - pt).pow(self.g)


def example():
    torch.manual_seed(14)
    return torch.randn(2, 6, 5, 5), (torch.rand(2, 4, 5, 5) > .9).float()
