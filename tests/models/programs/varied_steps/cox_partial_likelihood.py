"""Cox proportional-hazards step: negative log partial likelihood with the risk sets formed by sorting and a running sum.

MISTAKE (silent): the running sum over subjects sorted by ascending time holds those who left earlier; the risk set is those with
time >= t_i, so the sort has to be descending.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, p=7):
        super().__init__()
        self.risk = nn.Sequential(nn.Linear(p, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x, time, event):
        idx = torch.argsort(time)  # fault: risk-set-of-the-past
        eta = self.risk(x).squeeze(-1)[idx]
        ev = event[idx]
        log_risk = torch.log(torch.cumsum(torch.exp(eta), dim=0))  # fault: risk-set-of-the-past
        return -((eta - log_risk) * ev).sum() / ev.sum().clamp(min=1.0)


class Fixed(Step):
    def forward(self, x, time, event):
        idx = torch.argsort(time, descending=True)
        eta = self.risk(x).squeeze(-1)[idx]
        ev = event[idx]
        log_risk = torch.log(torch.cumsum(torch.exp(eta), dim=0))
        return -((eta - log_risk) * ev).sum() / ev.sum().clamp(min=1.0)


def example():
    torch.manual_seed(40)
    return torch.randn(8, 7), torch.rand(8) * 10, torch.tensor([1., 0, 1, 1, 0, 1, 0, 1])


OPEN = [{0: "patients"}, {0: "patients"}, {0: "patients"}]
