"""Unsupervised optical flow: warp frame 2 back with the predicted flow, compare with frame 1.

MISTAKE (silent): grid_sample grid in [0,1] instead of [-1,1].
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class FlowNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(6, 16, 5, padding=2), nn.LeakyReLU(0.1),
            nn.Conv2d(16, 16, 3, padding=1), nn.LeakyReLU(0.1),
            nn.Conv2d(16, 2, 3, padding=1),
        )

    def forward(self, a, b):
        return self.net(torch.cat([a, b], dim=1))


def warp(img, flow):
    _, _, H, W = img.shape
    yy, xx = torch.meshgrid(torch.arange(H, device=img.device), torch.arange(W, device=img.device), indexing="ij")
    gx = xx + flow[:, 0]
    gy = yy + flow[:, 1]
    grid = torch.stack([gx / (W - 1), gy / (H - 1)], dim=-1)  # fault: grid-in-unit-square
    return F.grid_sample(img, grid, mode="bilinear", padding_mode="border", align_corners=True)


def smoothness(flow):
    return (flow[..., 1:] - flow[..., :-1]).abs().mean() + (flow[..., 1:, :] - flow[..., :-1, :]).abs().mean()


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.flow = FlowNet()

    def forward(self, frame1, frame2):
        flow = self.flow(frame1, frame2)
        recon = warp(frame2, flow)  # fault: grid-in-unit-square
        photo = torch.sqrt((recon - frame1) ** 2 + 1e-6).mean()
        return photo + 0.1 * smoothness(flow)


def example():
    g = torch.Generator().manual_seed(58)
    return torch.rand(2, 3, 14, 18, generator=g), torch.rand(2, 3, 14, 18, generator=g)
