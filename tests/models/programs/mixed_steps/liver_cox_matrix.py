"""Cox partial likelihood with a risk-set matrix.

CORRECT: (1, B) against (B, 1) is meant to broadcast; the row i holds who is still at risk at time i, and contains i itself, so that the logsumexp
is finite. The division is by the clamped number of events.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.risk = nn.Sequential(nn.Linear(12, 20), nn.SELU(), nn.Linear(20, 1, bias=False))

    def forward(self, labs, time, event):
        eta = self.risk(labs).view(-1)
        at_risk = time.view(1, -1) >= time.view(-1, 1)
        table = eta.unsqueeze(0).masked_fill(~at_risk, float("-inf"))
        log_denominator = torch.logsumexp(table, dim=1)
        return -((eta - log_denominator) * event).sum() / event.sum().clamp(min=1.0)


def example():
    torch.manual_seed(85)
    return torch.randn(7, 12), torch.rand(7) * 10, torch.tensor([1., 0, 1, 1, 0, 0, 1])


OPEN = [{0: "patients"}, {0: "patients"}, {0: "patients"}]
