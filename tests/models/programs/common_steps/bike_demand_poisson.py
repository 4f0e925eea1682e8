"""Hourly bike rental counts per station.

MISTAKE (silent): PoissonNLLLoss default log_input=True although the net outputs a softplus rate.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class DemandNet(nn.Module):
    def __init__(self, stations=30, d_weather=5):
        super().__init__()
        self.station = nn.Embedding(stations, 8)
        self.hour = nn.Embedding(24, 6)
        self.fc = nn.Linear(8 + 6 + d_weather, 32)
        self.out = nn.Linear(32, 1)

    def forward(self, station, hour, weather):
        h = torch.cat([self.station(station), self.hour(hour), weather], dim=1)
        h = F.relu(self.fc(h))
        return F.softplus(self.out(h)).squeeze(1)      # expected count, > 0


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = DemandNet()
        self.criterion = nn.PoissonNLLLoss()

    def forward(self, station, hour, weather, rentals):
        rate = self.net(station, hour, weather)
        loss = self.criterion(rate, rentals)  # fault: rate-as-log-rate
        return loss, (rate - rentals).abs().mean()


def example():
    g = torch.Generator().manual_seed(51)
    return (torch.randint(0, 30, (9,), generator=g), torch.randint(0, 24, (9,), generator=g),
            torch.randn(9, 5, generator=g), torch.randint(0, 25, (9,), generator=g).float())
