"""Cassava-style leaf disease classifier, one training step.

MISTAKE (silent): softmax in the model before CrossEntropyLoss (double softmax).
"""
import torch
import torch.nn as nn


class LeafNet(nn.Module):
    def __init__(self, num_classes=5):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Linear(32, 64),
            nn.ReLU(inplace=True),
            nn.Linear(64, num_classes),
            nn.Softmax(dim=1),
        )

    def forward(self, x):
        return self.classifier(self.features(x))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = LeafNet()
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, images, labels):
        outputs = self.model(images)
        loss = self.criterion(outputs, labels)  # fault: probabilities-into-logit-loss
        return loss


def example():
    g = torch.Generator().manual_seed(0)
    return torch.randn(6, 3, 20, 20, generator=g), torch.randint(0, 5, (6,), generator=g)
