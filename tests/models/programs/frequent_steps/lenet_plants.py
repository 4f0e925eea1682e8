"""Lenet plants.

MISTAKE (silent): reLU on the output logits before cross entropy.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class LeNet(nn.Module):
    def __init__(self, n_classes=7):
        super(LeNet, self).__init__()
        self.conv1 = nn.Conv2d(3, 6, 5)
        self.pool = nn.MaxPool2d(2, 2)
        self.conv2 = nn.Conv2d(6, 16, 3)
        self.fc1 = nn.Linear(16 * 3 * 3, 60)
        self.fc2 = nn.Linear(60, 42)
        self.fc3 = nn.Linear(42, n_classes)

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = self.pool(F.relu(self.conv2(x)))
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        x = F.relu(self.fc3(x))  # fault: probabilities-into-logit-loss
        return x


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = LeNet()
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, inputs, labels):
        outputs = self.net(inputs)
        loss = self.criterion(outputs, labels)  # fault: probabilities-into-logit-loss
        _, predicted = torch.max(outputs, 1)
        return loss, (predicted == labels).sum()


def example():
    g = torch.Generator().manual_seed(27)
    return torch.rand(5, 3, 20, 20, generator=g) * 2 - 1, torch.randint(0, 7, (5,), generator=g)
