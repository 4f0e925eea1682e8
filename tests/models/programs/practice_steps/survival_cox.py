"""Survival after surgery: neural Cox model on tabular data.

CORRECT: risks [B] are compared with all others through a [B, B] at-risk mask on purpose; the logsumexp runs over the
patients at risk (dim=1); only observed events count in the mean, censored ones only in the risk sets.
"""
import torch
import torch.nn as nn


class RiskNet(nn.Module):
    def __init__(self, n_num=10, n_hosp=8, n_stage=4):
        super().__init__()
        self.hosp = nn.Embedding(n_hosp, 3)
        self.stage = nn.Embedding(n_stage, 2)
        self.net = nn.Sequential(nn.Linear(n_num + 5, 24), nn.SELU(), nn.Linear(24, 1, bias=False))

    def forward(self, num, hosp, stage):
        x = torch.cat([num, self.hosp(hosp), self.stage(stage)], dim=1)
        return self.net(x).squeeze(1)


def cox_loss(risk, time, event):
    # at_risk[i, j]: patient j is still under observation when i has the event
    at_risk = time.unsqueeze(0) >= time.unsqueeze(1)
    masked = risk.unsqueeze(0).masked_fill(~at_risk, float("-inf"))
    log_denominator = torch.logsumexp(masked, dim=1)
    return -((risk - log_denominator) * event).sum() / event.sum().clamp(min=1)


class Step(nn.Module):
    def __init__(self, l2=1e-3):
        super().__init__()
        self.net = RiskNet()
        self.l2 = l2

    def forward(self, num, hosp, stage, time, event):
        risk = self.net(num, hosp, stage)
        penalty = sum((p ** 2).sum() for p in self.net.net.parameters())
        return cox_loss(risk, time, event) + self.l2 * penalty


def example():
    g = torch.Generator().manual_seed(1)
    return (
        torch.randn(7, 10, generator=g),
        torch.randint(0, 8, (7,), generator=g),
        torch.randint(0, 4, (7,), generator=g),
        torch.rand(7, generator=g) * 60 + 1,
        torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0]),
    )
