"""Trains one network to guess a film's release decade and running time from its poster features. The decade head already gives softmax probabilities, which then go into the cross entropy; it should give logits."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class DecadeHead(nn.Module):
    def __init__(self, dim, decades):
        super().__init__()
        self.hidden = nn.Linear(dim, 20)
        self.out = nn.Linear(20, decades)

    def forward(self, h):
        h = F.elu(self.hidden(h))
        return F.softmax(self.out(h), dim=-1)  # fault: probabilities-into-logit-loss


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(50, 38), nn.ELU())
        self.decade = DecadeHead(38, 10)
        self.minutes = nn.Linear(38, 1)

    def forward(self, poster, decade, minutes):
        h = self.trunk(poster)
        minutes_loss = F.huber_loss(self.minutes(h).view(-1), (minutes - 100.0) / 25.0)
        decade_loss = F.cross_entropy(self.decade(h), decade)  # fault: probabilities-into-logit-loss
        return decade_loss + 0.5 * minutes_loss


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(19, 50), torch.randint(0, 10, (19,)), 100 + 25 * torch.randn(19))
