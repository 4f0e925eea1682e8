"""Probe faces are matched with a gallery of class centres by cosine similarity, trained with cross-entropy over the gallery.

MISTAKE (silent): cosine_similarity of (N, 1, D) and (1, M, D) is taken along dim=1, that is the gallery axis, which gives (N, D); with D = M nothing fails. It should be dim=-1.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, classes=16, dim=16):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(40, 32), nn.ReLU(), nn.Linear(32, dim))
        self.centres = nn.Parameter(torch.randn(classes, dim))

    def forward(self, probe, who):
        e = self.enc(probe)
        sim = F.cosine_similarity(e.unsqueeze(1), self.centres.unsqueeze(0), dim=1)  # fault: class-axis-position
        return F.cross_entropy(16.0 * sim, who)


class Fixed(Step):
    def forward(self, probe, who):
        e = self.enc(probe)
        sim = F.cosine_similarity(e.unsqueeze(1), self.centres.unsqueeze(0), dim=-1)
        return F.cross_entropy(16.0 * sim, who)


def example():
    torch.manual_seed(79)
    return torch.randn(5, 40), torch.randint(0, 16, (5,))


OPEN = [{0: "n"}, {0: "n"}]
