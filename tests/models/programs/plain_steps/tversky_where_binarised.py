import torch
from torch import nn


def tversky(probs, target, alpha=0.3, beta=0.7, smooth=1.0):
    probs = torch.where(probs >= 0.5, torch.ones_like(probs), torch.zeros_like(probs))  # fault: loss-detached-from-parameters
    tp = (probs * target).sum((1, 2, 3))
    fp = (probs * (1 - target)).sum((1, 2, 3))
    fn = ((1 - probs) * target).sum((1, 2, 3))
    return 1 - ((tp + smooth) / (tp + alpha * fp + beta * fn + smooth)).mean()


class Lesion(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(1, 6, 3, padding=1), nn.Conv2d(6, 2, 1)

    def forward(self, scan, lesion):
        probs = torch.softmax(self.b(torch.relu(self.a(scan))), dim=1)
        return tversky(probs, lesion)  # fault: loss-detached-from-parameters


def example():
    m = (torch.rand(2, 1, 9, 9) > 0.8).float()
    return (torch.randn(2, 1, 9, 9), torch.cat([1 - m, m], 1))


Step = Lesion
