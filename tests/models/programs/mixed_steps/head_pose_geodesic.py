"""Head pose from crops: six-dimensional rotation output, geodesic loss.

MISTAKE (may): acos of (trace-1)/2 without a clamp; rounding pushes it above 1 (NaN) and the slope at 1 is infinite.
"""
import torch
import torch.nn.functional as F
from torch import nn


def gram_schmidt(a6):
    a, b = a6[:, :3], a6[:, 3:]
    x = F.normalize(a, dim=1)
    y = F.normalize(b - (x * b).sum(1, keepdim=True) * x, dim=1)
    z = torch.linalg.cross(x, y, dim=1)
    return torch.stack([x, y, z], dim=2)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 8, 5, 2), nn.ReLU(), nn.Conv2d(8, 16, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 4 * 4, 6))

    def angle(self, cos):
        return torch.acos(cos)  # fault: infinite-gradient

    def forward(self, crop, rot):
        r = gram_schmidt(self.net(crop))
        trace = (r * rot).sum(dim=(1, 2))
        return self.angle((trace - 1) / 2).mean()  # fault: infinite-gradient


class Fixed(Step):
    def angle(self, cos):
        return torch.acos(cos.clamp(-1 + 1e-6, 1 - 1e-6))


def example():
    torch.manual_seed(59)
    return torch.randn(3, 1, 21, 21), gram_schmidt(torch.randn(3, 6))
