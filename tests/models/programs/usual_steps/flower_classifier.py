"""Flower classifier.

MISTAKE (silent): outputs already went through softmax, CrossEntropyLoss applies it again.
"""
import torch
import torch.nn as nn


class Block(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(cout)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        return self.pool(torch.relu(self.bn(self.conv(x))))


class FlowerNet(nn.Module):
    def __init__(self, n_classes=17, widths=(3, 12, 24)):
        super().__init__()
        self.blocks = nn.Sequential(*[Block(a, b) for a, b in zip(widths[:-1], widths[1:])])
        self.classifier = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(widths[-1], 40),
            nn.ReLU(),
            nn.Linear(40, n_classes),
            nn.Softmax(dim=1),
        )

    def forward(self, x):
        return self.classifier(self.blocks(x))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = FlowerNet()
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, images, labels):
        outputs = self.model(images)
        loss = self.criterion(outputs, labels)  # fault: probabilities-into-logit-loss
        return loss


def example():
    torch.manual_seed(0)
    return torch.randn(8, 3, 32, 32), torch.randint(0, 17, (8,))
