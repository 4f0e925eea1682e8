"""Super resolution, pixel shuffle written by hand with a wrong permutation.

(B, C, r, r, H, W) has to become (B, C, H, r, W, r); the permute gives (B, C, r, H, r, W), which lays the
sub-pixels out as blocks of the picture.  Fix: permute(0, 1, 4, 2, 5, 3).
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, r=2):
        super().__init__()
        self.r = r
        self.body = nn.Conv2d(3, 3 * r * r, 3, padding=1)

    def shuffle(self, x):
        b, c, h, w = x.shape
        r = self.r
        x = x.view(b, c // r ** 2, r, r, h, w)
        return x.permute(0, 1, 2, 4, 3, 5).reshape(b, c // r ** 2, h * r, w * r)

    def forward(self, lr, hr):
        up = torch.nn.functional.interpolate(lr, scale_factor=2, mode="nearest")
        return (up + self.shuffle(self.body(lr)) - hr).abs().mean()  # fault: pixels-laid-out-as-blocks


class Fixed(Step):
    def shuffle(self, x):
        b, c, h, w = x.shape
        r = self.r
        x = x.view(b, c // r ** 2, r, r, h, w)
        return x.permute(0, 1, 4, 2, 5, 3).reshape(b, c // r ** 2, h * r, w * r)


def example():
    torch.manual_seed(36)
    return torch.rand(1, 3, 5, 6), torch.rand(1, 3, 10, 12)
