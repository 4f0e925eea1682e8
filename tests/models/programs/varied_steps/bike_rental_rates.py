"""Hourly bike rental counts: Poisson regression with embeddings for hour and weekday.

MISTAKE (silent): the rate is exponentiated first and F.poisson_nll_loss, whose log_input is True by default, exponentiates it again; log_input=False (or no exp) is right.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.hour = nn.Embedding(24, 6)
        self.wday = nn.Embedding(7, 4)
        self.mlp = nn.Sequential(nn.Linear(6 + 4 + 3, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, hour, weekday, weather, rentals):
        h = torch.cat([self.hour(hour), self.wday(weekday), weather], dim=1)
        rate = self.mlp(h).squeeze(1).exp()
        return F.poisson_nll_loss(rate, rentals.float())  # fault: rate-as-log-rate


class Fixed(Step):
    def forward(self, hour, weekday, weather, rentals):
        h = torch.cat([self.hour(hour), self.wday(weekday), weather], dim=1)
        rate = self.mlp(h).squeeze(1).exp()
        return F.poisson_nll_loss(rate, rentals.float(), log_input=False)


def example():
    torch.manual_seed(61)
    return torch.randint(0, 24, (6,)), torch.randint(0, 7, (6,)), torch.randn(6, 3), torch.randint(0, 9, (6,))


OPEN = [{0: "rows"}] * 4
