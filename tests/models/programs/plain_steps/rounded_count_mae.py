import torch
from torch import nn


class CrowdCounter(nn.Module):
    def __init__(self):
        super().__init__()
        self.density = nn.Sequential(nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(), nn.Conv2d(8, 1, 1), nn.Softplus())

    def forward(self, img, count):
        pred = self.density(img).sum(dim=(1, 2, 3))
        pred = torch.round(pred)
        return torch.abs(pred - count).mean()  # fault: loss-detached-from-parameters


def example():
    return (torch.rand(4, 1, 14, 14), torch.randint(1, 40, (4,)).float())


Step = CrowdCounter
