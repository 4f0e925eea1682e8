"""Perceptual loss in mixed precision: features of an 8-bit image and its reconstruction are compared in half precision.

MISTAKE (may): the features of 0..255 images are squared and summed in float16, which overflows to inf above 65504; the distance should be computed in float32.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.ae = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 3, 3, padding=1))
        self.register_buffer("probe", torch.randn(8, 3) * 0.5)

    def features(self, x):
        return torch.einsum("kc,bchw->bkhw", self.probe, x)

    def distance(self, a, b):
        d = a.half() - b.half()
        return d.pow(2).sum(dim=(1, 2, 3)).float()  # fault: overflow-in-cast

    def forward(self, photo):
        x = photo.float()
        rec = 255 * torch.sigmoid(self.ae(x / 255))
        per_image = self.distance(self.features(rec), self.features(x))  # fault: overflow-in-cast
        return per_image.mean() / (255.0 ** 2)


class Fixed(Step):
    def distance(self, a, b):
        return (a - b).pow(2).sum(dim=(1, 2, 3))


def example():
    torch.manual_seed(103)
    return (torch.randint(120, 136, (3, 3, 6, 6)).to(torch.uint8),)
