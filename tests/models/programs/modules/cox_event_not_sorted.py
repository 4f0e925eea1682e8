"""Cox proportional hazards (DeepSurv).

Risks are put in descending order of time for the cumulative risk sets, the event flags
are not: the flags select other patients' terms.  Fix: event = event[order].
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.risk = nn.Sequential(nn.Linear(9, 16), nn.SELU(), nn.Linear(16, 1))

    def partial(self, log_h, event, order):
        log_h = log_h[order]
        log_cum = torch.log(torch.cumsum(torch.exp(log_h - log_h.max()), 0) + 1e-7) + log_h.max()
        return -((log_h - log_cum) * event).sum() / event.sum().clamp(min=1)  # wrong: event still in input order

    def forward(self, x, time, event):
        order = torch.sort(time, descending=True).indices
        return self.partial(self.risk(x).squeeze(-1), event, order)  # fault: samples-in-other-order


class Fixed(Step):
    def partial(self, log_h, event, order):
        return super().partial(log_h, event[order], order)


def example():
    torch.manual_seed(14)
    return torch.randn(12, 9), torch.rand(12) * 5, (torch.rand(12) > 0.4).float()
