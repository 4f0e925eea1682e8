"""Trains an anchor classifier of traffic signs with the focal loss. The modulating factor is p_t ** gamma, which favours easy anchors; it should be (1 - p_t) ** gamma."""
import torch
import torch.nn.functional as F
from torch import nn


class FocalLoss(nn.Module):
    def __init__(self, alpha=0.25, gamma=2.0):
        super().__init__()
        self.alpha, self.gamma = alpha, gamma

    def forward(self, logits, onehot):
        ce = F.binary_cross_entropy_with_logits(logits, onehot, reduction="none")
        p_t = torch.exp(-ce)
        alpha_t = self.alpha * onehot + (1 - self.alpha) * (1 - onehot)
        focal = alpha_t * p_t.pow(self.gamma) * ce  # fault: one-sided-loss
        return focal.sum() / onehot.sum().clamp(min=1)


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, signs=6, anchors=3):
        super().__init__()
        self.fpn = nn.Conv2d(8, 16, 3, padding=1)
        self.cls = nn.Conv2d(16, anchors * signs, 1)
        self.signs = signs
        self.loss = FocalLoss()

    def forward(self, fmap, onehot):
        y = self.cls(F.relu(self.fpn(fmap)))
        y = y.permute(0, 2, 3, 1).reshape(fmap.shape[0], -1, self.signs)
        return self.loss(y, onehot)


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    hot = torch.zeros(2, 7 * 9 * 3, 6)
    hot[0, 5, 1] = hot[0, 77, 3] = hot[1, 140, 0] = 1.0
    return (torch.randn(2, 8, 7, 9), hot)
