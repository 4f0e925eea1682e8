"""Trains the patch discriminator of a satellite-to-map translation. The discriminator ends in a sigmoid, but the loss wants logits; the sigmoid should go."""
import torch
import torch.nn.functional as F
from torch import nn


class PatchCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(6, 12, 4, stride=2, padding=1)
        self.c2 = nn.Conv2d(12, 20, 4, stride=2, padding=1)
        self.c3 = nn.Conv2d(20, 1, 3, padding=1)

    def forward(self, photo, street_map):
        x = torch.cat((photo, street_map), dim=1)
        x = F.leaky_relu(self.c1(x), 0.2)
        x = F.leaky_relu(self.c2(x), 0.2)
        return self.c3(x).sigmoid()  # fault: probabilities-into-logit-loss


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.G = nn.Sequential(nn.Conv2d(3, 10, 3, padding=1), nn.ReLU(), nn.Conv2d(10, 3, 3, padding=1), nn.Tanh())
        self.D = PatchCritic()
        self.bce = nn.BCEWithLogitsLoss()

    def forward(self, photo, street_map):
        drawn = self.G(photo).detach()
        on_real = self.D(photo, street_map)
        on_fake = self.D(photo, drawn)
        loss = self.bce(on_real, torch.ones_like(on_real)) + self.bce(on_fake, torch.zeros_like(on_fake))  # fault: probabilities-into-logit-loss
        return loss * 0.5


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.rand(3, 3, 24, 32) * 2 - 1, torch.rand(3, 3, 24, 32) * 2 - 1)
