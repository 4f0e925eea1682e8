"""Trains a diffusion model of point clouds. The network's output is compared with the noisy cloud that went in; it should be compared with the noise."""
import torch
import torch.nn as nn


class PointNet(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.local = nn.Linear(4, hidden)
        self.glob = nn.Linear(hidden, hidden)
        self.head = nn.Linear(2 * hidden, 3)

    def forward(self, pts, t):
        tt = t[:, None, None].expand(-1, pts.size(1), 1)
        f = torch.relu(self.local(torch.cat([pts, tt], -1)))
        g = torch.relu(self.glob(f)).max(dim=1, keepdim=True).values
        return self.head(torch.cat([f, g.expand_as(f)], -1))


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, T=50):
        super().__init__()
        self.T = T
        self.net = PointNet()
        abar = torch.cumprod(1 - torch.linspace(0.001, 0.1, T), 0)
        self.register_buffer("sqrt_ab", abar.sqrt())
        self.register_buffer("sqrt_1mab", (1 - abar).sqrt())

    def forward(self, cloud, t, noise):
        c1 = self.sqrt_ab[t][:, None, None]
        c2 = self.sqrt_1mab[t][:, None, None]
        noisy = c1 * cloud + c2 * noise
        pred = self.net(noisy, t.float() / self.T)
        return nn.functional.mse_loss(pred, noisy)  # fault: noisy-target


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(5, 40, 3), torch.randint(0, 50, (5,)), torch.randn(5, 40, 3))
