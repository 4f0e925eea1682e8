import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 7))
        self.ce = nn.CrossEntropyLoss(reduction="none")

    def forward(self, x, y, sample_weight):
        """sample_weight: column of the data frame, [N, 1]"""
        per_sample = self.ce(self.net(x), y)
        weighted = per_sample * sample_weight  # fault: silent-broadcast-in-loss
        return weighted.sum() / sample_weight.sum()


def example():
    return (torch.randn(18, 30), torch.randint(0, 7, (18,)), torch.rand(18, 1) + 0.1)


Step = Classifier
OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]
