"""Driving scene: depth, drivable area and steering with learned task uncertainty.

CORRECT: exp(-s) weights plus s terms may turn the loss negative; the depth loss is masked to valid pixels.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Backbone(nn.Module):
    def __init__(self, c=12):
        super().__init__()
        self.stem = nn.Conv2d(3, c, 3, padding=1)
        self.depth = nn.Conv2d(c, 1, 1)
        self.road = nn.Conv2d(c, 1, 1)
        self.steer = nn.Linear(c, 1)

    def forward(self, x):
        h = F.relu(self.stem(x))
        return F.softplus(self.depth(h)), self.road(h), self.steer(h.mean((2, 3)))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Backbone()
        self.log_vars = nn.Parameter(torch.tensor([0.1, -0.2, 0.3]))

    def forward(self, frame, depth, road, angle):
        d, r, a = self.net(frame)
        valid = (depth > 0).float()
        l_depth = ((d - depth).abs() * valid).sum() / valid.sum().clamp(min=1)
        l_road = F.binary_cross_entropy_with_logits(r.squeeze(1), road)
        l_steer = F.mse_loss(a[:, 0], angle)
        losses = torch.stack([l_depth, l_road, l_steer])
        return (torch.exp(-self.log_vars) * losses + self.log_vars).sum()


def example():
    g = torch.Generator().manual_seed(1)
    depth = torch.rand(5, 1, 12, 16, generator=g) * 10
    depth = depth * (torch.rand(5, 1, 12, 16, generator=g) > 0.4)
    return (
        torch.rand(5, 3, 12, 16, generator=g),
        depth,
        (torch.rand(5, 12, 16, generator=g) > 0.5).float(),
        torch.randn(5, generator=g) * 0.2,
    )


OPEN = [{0: "batch"}] * 4
