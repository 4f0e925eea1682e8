import torch
from torch import nn


class RoadSeg(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 1, 1))

    def forward(self, img, mask):
        p = torch.sigmoid(self.net(img))[:, 0]
        t = mask > 0.5
        inter = torch.logical_and(p > 0.5, t).float().sum(dim=(1, 2))  # fault: loss-detached-from-parameters
        union = torch.logical_or(p > 0.5, t).float().sum(dim=(1, 2))
        return 1.0 - ((inter + 1e-6) / (union + 1e-6)).mean()


def example():
    return (torch.randn(3, 3, 12, 12), (torch.rand(3, 12, 12) > .6).float())


Step = RoadSeg
