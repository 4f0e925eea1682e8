import torch
from torch import nn


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(9, 14), nn.ReLU(), nn.Linear(14, 1), nn.Sigmoid())

    def forward(self, x, y):
        prob = self.net(x).flatten()
        pred = (prob > 0.5).type(torch.float32)
        return (pred - y).abs().mean()  # fault: loss-detached-from-parameters


def example():
    return (torch.randn(17, 9), (torch.rand(17) > .5).float())


Step = Detector
