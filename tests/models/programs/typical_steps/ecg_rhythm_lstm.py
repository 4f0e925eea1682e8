"""ECG rhythm classification from windows [batch, time, leads].

MISTAKE (silent): nn.LSTM is built without batch_first=True, so it recurs over the batch axis.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, leads=3, hidden=16, n_rhythms=4):
        super().__init__()
        self.inp = nn.Linear(leads, 8)
        self.lstm = self.make_rnn(8, hidden)
        self.fc = nn.Linear(hidden, n_rhythms)

    def make_rnn(self, dim, hidden):
        return nn.LSTM(dim, hidden)

    def forward(self, ecg, rhythm):
        x = torch.tanh(self.inp(ecg))
        out, _ = self.lstm(x)  # fault: reduction-over-batch-axis works-only-at-some-sizes
        logits = self.fc(out[:, -1, :])
        return F.cross_entropy(logits, rhythm)


class Fixed(Step):
    def make_rnn(self, dim, hidden):
        return nn.LSTM(dim, hidden, batch_first=True)


def example():
    g = torch.Generator().manual_seed(1)
    return (torch.randn(6, 15, 3, generator=g), torch.randint(0, 4, (6,), generator=g))


OPEN = [{0: "batch"}, {0: "batch"}]
