"""Trains a small CNN that names the bird species in a spectrogram. The network ends in a softmax and CrossEntropyLoss applies another one; it should get the logits."""
import torch
import torch.nn.functional as F
from torch import nn


class SpectrogramNet(nn.Module):
    def __init__(self, n_species):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1, stride=2)
        self.fc = nn.Linear(16, n_species)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(x, 2)
        x = F.relu(self.conv2(x))
        x = x.mean(dim=(2, 3))
        return F.softmax(self.fc(x), dim=1)  # fault: probabilities-into-logit-loss


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.model = SpectrogramNet(11)
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, mel, species):
        output = self.model(mel)
        return self.criterion(output, species)  # fault: probabilities-into-logit-loss


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(6, 1, 32, 40), torch.randint(0, 11, (6,)))
