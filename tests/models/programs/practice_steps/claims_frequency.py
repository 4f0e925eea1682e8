"""Insurance claim frequency: Poisson regression weighted by the exposure of the policy.

MISTAKE (silent): the per-policy loss is [B] and the exposure column is [B, 1], the product is [B, B], every
loss gets the mean weight; the exposure has to be squeezed.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class ClaimNet(nn.Module):
    def __init__(self, n_num=6, n_region=9, n_car=13):
        super().__init__()
        self.region = nn.Embedding(n_region, 3)
        self.car = nn.Embedding(n_car, 3)
        self.net = nn.Sequential(nn.Linear(n_num + 6, 24), nn.GELU(), nn.Linear(24, 1))

    def forward(self, num, region, car):
        z = torch.cat([num, self.region(region), self.car(car)], dim=-1)
        return self.net(z).squeeze(-1)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = ClaimNet()

    def forward(self, num, region, car, exposure, frequency):
        # exposure: [B, 1] policy years, frequency: [B] claims per year
        log_rate = self.net(num, region, car)
        loss = torch.exp(log_rate) - frequency * log_rate
        return (loss * exposure).mean()  # fault: silent-broadcast-in-loss


class Fixed(Step):
    def forward(self, num, region, car, exposure, frequency):
        # exposure: [B, 1] policy years, frequency: [B] claims per year
        log_rate = self.net(num, region, car)
        loss = torch.exp(log_rate) - frequency * log_rate
        return (loss * exposure.squeeze(1)).mean()


def example():
    g = torch.Generator().manual_seed(1)
    return (
        torch.randn(7, 6, generator=g),
        torch.randint(0, 9, (7,), generator=g),
        torch.randint(0, 13, (7,), generator=g),
        torch.rand(7, 1, generator=g),
        torch.poisson(torch.full((7,), 0.8), generator=g),
    )


OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}, {0: "batch"}, {0: "batch"}]
