"""Cifar cnn.

MISTAKE (silent): softmax output is fed to CrossEntropyLoss, which applies log_softmax again.
"""
import torch
import torch.nn as nn


class Net(nn.Module):
    """Small CNN for CIFAR-10."""

    def __init__(self, num_classes=10):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Linear(32 * 4 * 4, 64),
            nn.ReLU(inplace=True),
            nn.Linear(64, num_classes),
        )
        self.softmax = nn.Softmax(dim=1)

    def forward(self, x):
        x = self.features(x)
        x = self.classifier(x)
        return self.softmax(x)  # fault: probabilities-into-logit-loss


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, images, labels):
        outputs = self.net(images)
        loss = self.criterion(outputs, labels)  # fault: probabilities-into-logit-loss
        acc = (outputs.argmax(dim=1) == labels).float().mean()
        return loss, acc


def example():
    g = torch.Generator().manual_seed(3)
    return torch.randn(6, 3, 16, 16, generator=g), torch.randint(0, 10, (6,), generator=g)
