"""Leaf classifier.

MISTAKE (silent): model output is already softmaxed, CrossEntropyLoss expects logits.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class LeafNet(nn.Module):
    def __init__(self, n_cls=12):
        super().__init__()
        self.c1 = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.c2 = nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.fc = nn.Linear(32, n_cls)

    def forward(self, x):
        x = F.relu(self.c1(x))
        x = F.relu(self.c2(x))
        x = F.adaptive_avg_pool2d(x, 1).flatten(1)
        return F.softmax(self.fc(x), dim=1)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = LeafNet()
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, images, labels):
        outputs = self.model(images)
        loss = self.criterion(outputs, labels)  # fault: probabilities-into-logit-loss
        correct = (outputs.argmax(1) == labels).sum()
        return loss, correct


def example():
    torch.manual_seed(0)
    return torch.rand(16, 3, 32, 32), torch.randint(0, 12, (16,))
