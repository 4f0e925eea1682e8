"""Denoising autoencoder on intensive-care vitals; the loss covers observed cells per patient.

MISTAKE (may): the per-patient error is divided by the count of observed cells, which is 0 for an empty stay: NaN. Clamp the count.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, v=7):
        super().__init__()
        self.ae = nn.Sequential(nn.Linear(2 * v, 20), nn.ReLU(), nn.Linear(20, 6), nn.ReLU(), nn.Linear(6, v))

    def average(self, err, seen):
        return err.sum((1, 2)) / seen.sum((1, 2))  # fault: no-rule

    def forward(self, vitals, seen):
        x = torch.where(seen > 0, vitals, torch.zeros_like(vitals))
        rec = self.ae(torch.cat([x, seen], -1))
        err = (rec - x) ** 2 * seen
        return self.average(err, seen).mean()  # fault: no-rule


class Fixed(Step):
    def average(self, err, seen):
        return err.sum((1, 2)) / seen.sum((1, 2)).clamp(min=1.0)


def example():
    torch.manual_seed(57)
    return torch.randn(4, 6, 7), (torch.rand(4, 6, 7) < 0.6).float()


OPEN = [{0: "stays", 1: "hours"}, {0: "stays", 1: "hours"}]
