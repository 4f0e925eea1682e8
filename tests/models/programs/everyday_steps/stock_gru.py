"""Stock gru.

MISTAKE (silent): x is [B,T,F] but the GRU is not batch_first, it recurs over the batch.
"""
import torch
import torch.nn as nn


class Forecaster(nn.Module):
    def __init__(self, n_feat=6, hidden=40):
        super().__init__()
        self.rnn = nn.GRU(n_feat, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        h, _ = self.rnn(x)  # fault: reduction-over-batch-axis
        last = h[:, -1, :]
        return self.out(last).squeeze(-1)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Forecaster()

    def forward(self, window, next_return):
        # window: [batch, time, features]
        pred = self.net(window)
        err = pred - next_return
        mse = (err * err).mean()
        with torch.no_grad():
            hit = (torch.sign(pred) == torch.sign(next_return)).float().mean()
        return mse, hit


def example():
    torch.manual_seed(0)
    return torch.randn(20, 30, 6), torch.randn(20) * 0.02
