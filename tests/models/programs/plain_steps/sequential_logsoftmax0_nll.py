# MNIST MLP; classifier ends with LogSoftmax, trained with the negative log likelihood
from collections import OrderedDict

import torch
from torch import nn

classifier = lambda: nn.Sequential(OrderedDict([
    ("fc1", nn.Linear(64, 32)),
    ("relu", nn.ReLU()),
    ("fc2", nn.Linear(32, 10)),
    ("output", nn.LogSoftmax(dim=0)),  # fault: softmax-over-batch-axis
]))


class Train(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = classifier()

    def criterion(self, logps, labels):
        onehot = torch.eye(10)[labels]
        return -(logps * onehot).sum(dim=1).mean()

    def forward(self, images, labels):
        images = images.view(images.shape[0], -1)
        logps = self.model(images)  # fault: softmax-over-batch-axis
        return self.criterion(logps, labels)


def example():
    return (torch.randn(16, 1, 8, 8), torch.randint(0, 10, (16,)))


Step = Train
OPEN = [{0: "batch"}, {0: "batch"}]
