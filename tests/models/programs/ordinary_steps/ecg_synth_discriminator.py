"""Trains the discriminator of a GAN for synthetic ECG beats. The network ends in a sigmoid although BCEWithLogitsLoss applies one itself; the last layer should give raw logits."""
import torch
from torch import nn


class BeatDiscriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv1d(1, 8, 7, stride=3), nn.LeakyReLU(0.2), nn.Conv1d(8, 16, 5, stride=3), nn.LeakyReLU(0.2))
        self.classify = nn.Linear(16, 1)

    def forward(self, beat):
        h = self.features(beat).mean(dim=2)
        return self.classify(h).sigmoid().flatten()  # fault: probabilities-into-logit-loss


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.gen = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 90))
        self.disc = BeatDiscriminator()
        self.bce = nn.BCEWithLogitsLoss()

    def forward(self, beats, latent):
        fake = self.gen(latent).detach()
        both = torch.cat([beats, fake]).unsqueeze(1)
        verdict = self.disc(both)  # fault: probabilities-into-logit-loss
        target = torch.cat([torch.ones(beats.size(0)), torch.zeros(fake.size(0))])
        return self.bce(verdict, target)  # fault: probabilities-into-logit-loss


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(13, 90), torch.randn(11, 6))
