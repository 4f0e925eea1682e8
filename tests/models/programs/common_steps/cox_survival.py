"""DeepSurv: negative Cox partial log-likelihood (Breslow, no ties).

CORRECT: Cox partial likelihood, descending sort and cumulative sum with max shift.
"""
import torch
from torch import nn


class RiskNet(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(d, 24), nn.SELU(),
            nn.Linear(24, 12), nn.SELU(),
            nn.Linear(12, 1, bias=False),
        )

    def forward(self, x):
        return self.layers(x)[:, 0]


class Step(nn.Module):
    def __init__(self, d=9):
        super().__init__()
        self.risk = RiskNet(d)

    def forward(self, covariates, time, event):
        # longest follow-up first: the prefix up to i is then the risk set of i
        order = torch.argsort(time, descending=True)
        log_h = self.risk(covariates)[order]
        e = event[order].float()
        shift = log_h.max().detach()
        log_cum = torch.log(torch.cumsum(torch.exp(log_h - shift), dim=0)) + shift
        partial = (log_h - log_cum) * e
        return -partial.sum() / e.sum().clamp(min=1.0)


def example():
    g = torch.Generator().manual_seed(35)
    return (torch.randn(12, 9, generator=g), torch.rand(12, generator=g) * 60,
            torch.rand(12, generator=g) < 0.6)
