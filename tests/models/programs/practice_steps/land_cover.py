"""Land cover classification of 4-band tiles delivered as [B, H, W, bands].

MISTAKE (silent): the tiles are brought to channels-first with reshape, which scrambles the pixels; it has to
be permute(0, 3, 1, 2).
"""
import torch
import torch.nn as nn


def conv_block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU(), nn.MaxPool2d(2))


class TileNet(nn.Module):
    def __init__(self, bands=4, n_class=9):
        super().__init__()
        self.stem = conv_block(bands, 8)
        self.body = conv_block(8, 16)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(16, n_class)

    def forward(self, x):
        x = self.pool(self.body(self.stem(x)))
        return self.fc(x.flatten(1))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.31, 0.34, 0.29, 0.45]))
        self.register_buffer("std", torch.tensor([0.12, 0.11, 0.12, 0.2]))
        self.net = TileNet()
        self.loss = nn.CrossEntropyLoss()

    def forward(self, tiles, cover):
        tiles = (tiles - self.mean) / self.std
        n, h, w, c = tiles.shape
        x = tiles.reshape(n, c, h, w)  # fault: reshape-moves-axis
        return self.loss(self.net(x), cover)


class Fixed(Step):
    def forward(self, tiles, cover):
        tiles = (tiles - self.mean) / self.std
        x = tiles.permute(0, 3, 1, 2)
        return self.loss(self.net(x), cover)


def example():
    g = torch.Generator().manual_seed(1)
    return torch.rand(6, 12, 12, 4, generator=g), torch.randint(0, 9, (6,), generator=g)
