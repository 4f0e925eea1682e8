"""Hand pose softargmax.

CORRECT: soft-argmax with marginals, hard argmax // and % only for a metric.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    """Integral pose regression: expectation of the heat map; PCK from the hard argmax as a metric."""

    def __init__(self, joints=5, beta=10.0):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, joints, 3, 1, 1))
        self.beta = beta

    def forward(self, image, xy, visible):
        hm = self.net(image)
        b, j, h, w = hm.shape
        prob = F.softmax(self.beta * hm.reshape(b, j, h * w), dim=2).view(b, j, h, w)
        ys = torch.arange(h, device=hm.device, dtype=hm.dtype)
        xs = torch.arange(w, device=hm.device, dtype=hm.dtype)
        ex = (prob.sum(dim=2) * xs).sum(dim=-1)      # columns: rows are marginalised
        ey = (prob.sum(dim=3) * ys).sum(dim=-1)
        pred = torch.stack([ex / (w - 1), ey / (h - 1)], dim=-1)
        err = (pred - xy).abs().sum(dim=-1)
        loss = (err * visible).sum() / visible.sum().clamp(min=1)

        best = hm.reshape(b, j, -1).argmax(dim=-1)
        hard = torch.stack([best % w, best // w], dim=-1).float() / torch.tensor([w - 1.0, h - 1.0])
        hit = ((hard - xy).pow(2).sum(-1) < 0.2 ** 2).float()
        pck = (hit * visible).sum() / visible.sum().clamp(min=1)
        return loss, pck


def example():
    g = torch.Generator().manual_seed(59)
    vis = torch.ones(3, 5)
    vis[0, 2] = vis[2, 4] = 0
    return torch.rand(3, 3, 16, 24, generator=g), torch.rand(3, 5, 2, generator=g), vis
