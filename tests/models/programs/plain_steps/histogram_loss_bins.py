import torch
import torch.nn.functional as F
from torch import nn

BINS = 16


def histogram(img):
    idx = (img.flatten(1) * BINS).long().clamp(0, BINS - 1)  # fault: loss-detached-from-parameters
    h = F.one_hot(idx, BINS).float().mean(dim=1)
    return h


class ToneMapper(nn.Module):
    def __init__(self):
        super().__init__()
        self.curve = nn.Sequential(nn.Conv2d(1, 8, 1), nn.ReLU(), nn.Conv2d(8, 1, 1), nn.Sigmoid())

    def forward(self, img, ref):
        ha, hb = histogram(self.curve(img)), histogram(ref)
        return (ha.cumsum(1) - hb.cumsum(1)).abs().sum(1).mean()  # fault: loss-detached-from-parameters


def example():
    return (torch.rand(2, 1, 8, 8), torch.rand(2, 1, 8, 8))


Step = ToneMapper
