"""Sketch/photo pairs with a learned temperature and symmetric InfoNCE.

CORRECT: labels are arange over the batch; the scale is exp(log_scale) and multiplies; cross-entropy over both axes of a square matrix.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Tower(nn.Module):
    def __init__(self, channels, dim=16):
        super().__init__()
        self.conv = nn.Conv2d(channels, 12, 3, stride=2, padding=1)
        self.fc = nn.Linear(12, dim)

    def forward(self, x):
        return self.fc(F.relu(self.conv(x)).mean(dim=(-2, -1)))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.sketch_tower = Tower(1)
        self.photo_tower = Tower(3)
        self.log_scale = nn.Parameter(torch.tensor(2.6593))

    def forward(self, sketch, photo):
        a = F.normalize(self.sketch_tower(sketch), dim=1)
        b = F.normalize(self.photo_tower(photo), dim=1)
        scale = self.log_scale.clamp(max=4.6052).exp()
        sim = scale * torch.einsum("id,jd->ij", a, b)
        labels = torch.arange(sketch.size(0), device=sketch.device)
        row = F.cross_entropy(sim, labels)
        col = -F.log_softmax(sim, dim=0).diagonal().mean()
        return 0.5 * (row + col)


def example():
    g = torch.Generator().manual_seed(1)
    return (torch.rand(6, 1, 16, 16, generator=g), torch.rand(6, 3, 16, 16, generator=g))


OPEN = [{0: "batch"}, {0: "batch"}]
