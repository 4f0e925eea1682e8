"""Trains a polyp segmenter with cross entropy plus Dice. The Dice coefficient is added as if it were a loss, so overlap is penalised; it should be 1 - dice."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def dice_coeff(prob, mask, smooth=1.0):
    p = prob.reshape(prob.size(0), -1)
    m = mask.reshape(mask.size(0), -1)
    inter = (p * m).sum(1)
    return ((2.0 * inter + smooth) / (p.sum(1) + m.sum(1) + smooth)).mean()


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.enc = nn.Conv2d(3, 14, 5, padding=2)
        self.mid = nn.Conv2d(14, 14, 3, padding=2, dilation=2)
        self.dec = nn.Conv2d(28, 1, 1)

    def forward(self, frame, mask):
        e = F.relu(self.enc(frame))
        m = F.relu(self.mid(e))
        logit = self.dec(torch.cat([e, m], 1))
        bce = F.binary_cross_entropy_with_logits(logit, mask)
        dice = dice_coeff(torch.sigmoid(logit), mask)  # fault: overlap-lowered
        return bce + dice  # fault: overlap-lowered


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(4, 3, 13, 17), (torch.rand(4, 1, 13, 17) < 0.25).float())
