"""Small convnet for ten digit classes.

MISTAKE (silent): the network ends with a softmax and the step uses CrossEntropyLoss, which applies
log_softmax itself; the network should return logits.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class DigitNet(nn.Module):
    def __init__(self, n_class=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 12, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(12 * 4 * 4, 20)
        self.fc2 = nn.Linear(20, n_class)

    def features(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = self.pool(F.relu(self.conv2(x)))
        x = x.view(x.size(0), -1)
        return F.relu(self.fc1(x))

    def forward(self, x):
        x = self.fc2(self.features(x))
        return F.softmax(x, dim=1)


class LogitNet(DigitNet):
    def forward(self, x):
        return self.fc2(self.features(x))


class Step(nn.Module):
    Net = DigitNet

    def __init__(self):
        super().__init__()
        self.net = self.Net()
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, image, label):
        output = self.net(image)
        return self.criterion(output, label)  # fault: probabilities-into-logit-loss


class Fixed(Step):
    Net = LogitNet


def example():
    g = torch.Generator().manual_seed(1)
    return torch.rand(6, 1, 16, 16, generator=g), torch.randint(0, 10, (6,), generator=g)


OPEN = [{0: "batch"}, {0: "batch"}]
