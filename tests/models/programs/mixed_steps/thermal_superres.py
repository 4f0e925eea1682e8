"""Thermal image super-resolution with sub-pixel upsampling written out.

CORRECT: view, permute, reshape is the pixel shuffle (r*r channels go to the sub-pixels); the permute precedes the reshape.
"""
import torch
from torch import nn


class Step(nn.Module):
    r = 2

    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(1, 16, 3, padding=1)
        self.b = nn.Conv2d(16, self.r ** 2, 3, padding=1)

    def forward(self, low, high):
        n, _, h, w = low.shape
        y = self.b(torch.relu(self.a(low)))
        y = y.view(n, 1, self.r, self.r, h, w).permute(0, 1, 4, 2, 5, 3).reshape(n, 1, h * self.r, w * self.r)
        up = nn.functional.interpolate(low, scale_factor=2.0, mode="nearest")
        diff = up + y - high
        return torch.sqrt(diff * diff + 1e-6).mean()


def example():
    torch.manual_seed(95)
    hi = torch.rand(3, 1, 12, 12)
    return nn.functional.avg_pool2d(hi, 2), hi


OPEN = [{0: "n"}, {0: "n"}]
