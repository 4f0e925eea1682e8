"""Digits nll.

MISTAKE (silent): log_softmax over the batch, not over the classes.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvNet(nn.Module):
    def __init__(self, n_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.fc = nn.Linear(16 * 7 * 7, n_classes)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = torch.flatten(x, 1)
        x = self.fc(x)
        return F.log_softmax(x, dim=0)  # fault: softmax-over-batch-axis


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = ConvNet()

    def forward(self, images, labels):
        output = self.net(images)
        loss = -output.gather(1, labels.unsqueeze(1)).mean()
        accuracy = (output.argmax(dim=1) == labels).float().mean()
        return loss, accuracy


def example():
    torch.manual_seed(0)
    return torch.randn(16, 1, 28, 28), torch.randint(0, 10, (16,))
