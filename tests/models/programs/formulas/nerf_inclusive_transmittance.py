"""Volume rendering: the transmittance of sample i includes sample i itself.

T_i is the product of (1 - alpha_j) over j < i; an inclusive product (exp of the cumsum of the logs) makes an opaque first sample invisible.
Fix: shift by one with a leading zero in the log.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 4))

    def trans(self, alpha):
        return torch.exp(torch.cumsum(torch.log(1.0 - alpha + 1e-6), dim=-1))

    def forward(self, pts, dists, rgb_gt):
        raw = self.mlp(pts)
        sigma = torch.relu(raw[..., 3])
        alpha = 1.0 - torch.exp(-sigma * dists)
        w = alpha * self.trans(alpha)  # fault: transmittance-of-own-sample
        rgb = (w.unsqueeze(-1) * torch.sigmoid(raw[..., :3])).sum(-2)
        return ((rgb - rgb_gt) ** 2).mean()


class Fixed(Step):
    def trans(self, alpha):
        lg = torch.log(1.0 - alpha + 1e-6)
        return torch.exp(torch.cat([torch.zeros_like(lg[..., :1]), torch.cumsum(lg, dim=-1)[..., :-1]], -1))


def example():
    torch.manual_seed(43)
    return torch.rand(5, 8, 3), torch.full((5, 8), .3), torch.rand(5, 3)
