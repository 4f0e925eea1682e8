"""Latent diffusion with stratified time sampling.

t is drawn from uniform u as floor(u*T) + 1 (one-based as in the paper) and then used as an
index in tables of length T: t = T is out of range whenever u >= 1 - 1/T.
Fix: no + 1.
"""
import torch
from torch import nn

OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]


class Step(nn.Module):
    T = 20

    def __init__(self):
        super().__init__()
        s = torch.arange(self.T) / self.T
        self.register_buffer("sig", torch.sin(1.4 * s) + 0.01)
        self.net = nn.Sequential(nn.Linear(17, 40), nn.SiLU(), nn.Linear(40, 16))

    def draw(self, u):
        return (u * self.T).long() + 1  # wrong: index T of a table of T entries

    def forward(self, z, u, eps):
        # u in [0, 1)
        t = self.draw(u.clamp(0.0, 0.999999))  # fault: index-out-of-range
        s = self.sig.index_select(0, t).unsqueeze(1)  # fault: index-out-of-range
        zt = torch.sqrt(1 - s ** 2) * z + s * eps
        pred = self.net(torch.cat((zt, s), 1))
        return (pred - eps).square().sum(-1).mean()


class Fixed(Step):
    def draw(self, u):
        return (u * self.T).long()


def example():
    torch.manual_seed(12)
    return torch.randn(5, 16), torch.tensor([0.1, 0.3, 0.5, 0.7, 0.9]), torch.randn(5, 16)
