"""Taxi destination prediction; the loss is the haversine distance in kilometres.

MISTAKE (silent): latitude and longitude are in degrees and go straight into sin and cos; torch.deg2rad is
missing.
"""
import torch
import torch.nn as nn

EARTH_KM = 6371.0


class DestinationNet(nn.Module):
    """Predicts a destination as a weighted mean of cluster centres."""

    def __init__(self, n_points=6, n_clusters=14, n_driver=20):
        super().__init__()
        self.driver = nn.Embedding(n_driver, 5)
        self.mlp = nn.Sequential(nn.Linear(2 * n_points + 5, 32), nn.ReLU(), nn.Linear(32, n_clusters))
        g = torch.Generator().manual_seed(3)
        centres = torch.tensor([41.15, -8.62]) + 0.05 * torch.randn(n_clusters, 2, generator=g)
        self.register_buffer("centres", centres)
        self.register_buffer("origin", torch.tensor([41.15, -8.62]))

    def forward(self, track, driver):
        x = ((track - self.origin) / 0.05).flatten(1)
        w = torch.softmax(self.mlp(torch.cat([x, self.driver(driver)], 1)), dim=1)
        return w @ self.centres


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = DestinationNet()

    def angles(self, coord):
        return coord[:, 0], coord[:, 1]

    def haversine(self, a, b):
        lat1, lon1 = self.angles(a)
        lat2, lon2 = self.angles(b)
        h = torch.sin((lat2 - lat1) / 2) ** 2
        h = h + torch.cos(lat1) * torch.cos(lat2) * torch.sin((lon2 - lon1) / 2) ** 2
        return 2 * EARTH_KM * torch.asin(torch.sqrt(h.clamp(1e-12, 1.0)))

    def forward(self, track, driver, dest):
        # track: [trip, point, (lat, lon)] in degrees, dest: [trip, (lat, lon)] in degrees
        return self.haversine(self.net(track, driver), dest).mean()  # fault: degrees-as-radians


class Fixed(Step):
    def angles(self, coord):
        rad = torch.deg2rad(coord)
        return rad[:, 0], rad[:, 1]


def example():
    g = torch.Generator().manual_seed(1)
    base = torch.tensor([41.15, -8.62])
    return (
        base + 0.05 * torch.randn(7, 6, 2, generator=g),
        torch.randint(0, 20, (7,), generator=g),
        base + 0.05 * torch.randn(7, 2, generator=g),
    )


OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]
