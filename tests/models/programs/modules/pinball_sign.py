"""Multi-horizon quantile forecaster (pinball loss).

max(q*e, (1-q)*e) should be max(q*e, (q-1)*e): as written negative errors give a negative loss, the
objective is unbounded below and forecasts run off upward.  Fix: (q - 1) * e.
"""
import torch
from torch import nn

OPEN = [{0: "batch"}, {0: "batch"}]


class Step(nn.Module):
    def __init__(self, horizon=6, quantiles=(0.1, 0.5, 0.9)):
        super().__init__()
        self.register_buffer("q", torch.tensor(quantiles))
        self.rnn = nn.GRU(4, 16, batch_first=True)
        self.out = nn.Linear(16, horizon * len(quantiles))
        self.h = horizon

    def pinball(self, e):
        return torch.max(self.q * e, (1 - self.q) * e)  # wrong: (1-q) for (q-1), loss negative

    def forward(self, x, y):
        _, hn = self.rnn(x)
        f = self.out(hn[-1]).view(x.size(0), self.h, -1)
        return self.pinball(y.unsqueeze(-1) - f).mean()  # fault: unbounded-loss


class Fixed(Step):
    def pinball(self, e):
        return torch.max(self.q * e, (self.q - 1) * e)


def example():
    torch.manual_seed(13)
    return torch.randn(4, 10, 4), torch.randn(4, 6)
