"""Cloth mesh refinement with an edge-length preservation term on all vertex pairs.

MISTAKE (silent): sqrt of squared distances including the zero diagonal: its gradient is infinite times 0 = NaN. Add an eps under the root.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3))

    def length(self, sq):
        return sq.sqrt()  # fault: infinite-gradient

    def pairwise(self, p):
        d = p.unsqueeze(2) - p.unsqueeze(1)
        return self.length((d * d).sum(-1))  # fault: infinite-gradient

    def forward(self, verts, normals, rest):
        moved = verts + 0.1 * self.mlp(torch.cat([verts, normals], -1))
        return (self.pairwise(moved) - rest).abs().mean() + 0.01 * (moved - verts).square().mean()  # fault: infinite-gradient


class Fixed(Step):
    def length(self, sq):
        return (sq + 1e-9).sqrt()


def example():
    torch.manual_seed(63)
    v = torch.randn(3, 6, 3)
    return v, torch.nn.functional.normalize(torch.randn(3, 6, 3), dim=-1), torch.cdist(v, v) * 1.05
