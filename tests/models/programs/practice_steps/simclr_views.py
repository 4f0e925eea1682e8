"""SimCLR pre-training: two augmented views per image, NT-Xent on 2N embeddings.

MISTAKE (silent): the similarities are multiplied by the temperature 0.1, they have to be divided by it.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, ch=12, out=16):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(3, ch, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(ch, ch, 3, stride=2, padding=1), nn.ReLU(),
        )
        self.projector = nn.Sequential(nn.Linear(ch, 24), nn.ReLU(), nn.Linear(24, out))

    def forward(self, x):
        return self.projector(self.conv(x).mean(dim=[2, 3]))


class Step(nn.Module):
    def __init__(self, temperature=0.1):
        super().__init__()
        self.temperature = temperature
        self.encoder = Encoder()

    def forward(self, view1, view2):
        n = view1.size(0)
        z = torch.cat([self.encoder(view1), self.encoder(view2)], dim=0)
        z = F.normalize(z, dim=1)
        sim = torch.mm(z, z.t()) * self.temperature  # fault: temperature-multiplied
        eye = torch.eye(2 * n, dtype=torch.bool)
        sim = sim.masked_fill(eye, -1e9)
        labels = torch.cat([torch.arange(n, 2 * n), torch.arange(0, n)])
        return F.cross_entropy(sim, labels)


class Fixed(Step):
    def forward(self, view1, view2):
        n = view1.size(0)
        z = torch.cat([self.encoder(view1), self.encoder(view2)], dim=0)
        z = F.normalize(z, dim=1)
        sim = torch.mm(z, z.t()) / self.temperature
        eye = torch.eye(2 * n, dtype=torch.bool)
        sim = sim.masked_fill(eye, -1e9)
        labels = torch.cat([torch.arange(n, 2 * n), torch.arange(0, n)])
        return F.cross_entropy(sim, labels)


def example():
    g = torch.Generator().manual_seed(1)
    return torch.rand(5, 3, 16, 16, generator=g), torch.rand(5, 3, 16, 16, generator=g)
