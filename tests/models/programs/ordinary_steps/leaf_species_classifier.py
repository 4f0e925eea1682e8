"""Trains a convolutional classifier of leaf photographs into species. Softmax is applied before the cross entropy, which applies log-softmax itself; the raw logits should be passed."""
import torch
import torch.nn.functional as F
from torch import nn


class LeafNet(nn.Module):
    def __init__(self, species):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.fc = nn.Linear(16, species)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = x.mean(dim=(2, 3))
        return self.fc(x)


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.model = LeafNet(species=7)
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

    def forward(self, images, labels):
        scores = self.model(images)
        scores = scores.softmax(dim=1)  # fault: probabilities-into-logit-loss
        return self.criterion(scores, labels)  # fault: probabilities-into-logit-loss


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(10, 3, 20, 20), torch.randint(0, 7, (10,)))
