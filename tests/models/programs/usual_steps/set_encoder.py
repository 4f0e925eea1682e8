"""Set encoder.

MISTAKE (silent): mask put on the query axis, softmax over keys ignores it; should be bias[:, None, :].
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class AttentionBlock(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.q = nn.Linear(d, d)
        self.k = nn.Linear(d, d)
        self.v = nn.Linear(d, d)
        self.ff = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)

    def forward(self, x, valid):
        h = self.n1(x)
        scores = torch.einsum("bqd,bkd->bqk", self.q(h), self.k(h)) * h.shape[-1] ** -0.5
        bias = (1.0 - valid) * -10000.0
        scores = scores + bias[:, :, None]  # fault: constant-along-softmax
        x = x + torch.einsum("bqk,bkd->bqd", F.softmax(scores, dim=-1), self.v(h))
        return x + self.ff(self.n2(x))


class Step(nn.Module):
    """Predict a property of a variable-size set of particles."""

    def __init__(self, n_in=5, d=32, n_layers=2):
        super().__init__()
        self.embed = nn.Linear(n_in, d)
        self.layers = nn.ModuleList([AttentionBlock(d) for _ in range(n_layers)])
        self.head = nn.Linear(d, 1)

    def forward(self, particles, valid, energy):
        x = self.embed(particles)
        for layer in self.layers:
            x = layer(x, valid)
        pooled = (x * valid[..., None]).sum(1) / valid.sum(1, keepdim=True)
        return F.mse_loss(self.head(pooled).squeeze(-1), energy)


def example():
    torch.manual_seed(0)
    n = torch.tensor([12, 7, 9, 12, 4, 10, 6])
    valid = (torch.arange(12)[None] < n[:, None]).float()
    return torch.randn(7, 12, 5), valid, torch.randn(7)
