"""Activity recognition from a wrist sensor with an LSTM.

MISTAKE (silent): the LSTM is time-major (no batch_first) and gets [batch, time, features]: it runs over the
persons as if they were time steps; batch_first=True is missing.
"""
import torch
import torch.nn as nn


class ActivityNet(nn.Module):
    batch_first = False

    def __init__(self, n_sensors=6, hidden=20, n_act=4):
        super().__init__()
        self.inp = nn.Linear(n_sensors, 12)
        self.lstm = nn.LSTM(input_size=12, hidden_size=hidden, batch_first=self.batch_first)
        self.fc = nn.Sequential(nn.Linear(hidden, 16), nn.ReLU(), nn.Linear(16, n_act))

    def forward(self, x):
        # x: [batch, time, sensors]
        x = torch.relu(self.inp(x))
        out, _ = self.lstm(x)  # fault: reduction-over-batch-axis
        return self.fc(out[:, -1, :])


class ActivityNetBF(ActivityNet):
    batch_first = True


class Step(nn.Module):
    net_cls = ActivityNet

    def __init__(self):
        super().__init__()
        self.net = self.net_cls()
        self.loss_fn = nn.CrossEntropyLoss()

    def forward(self, signal, activity):
        return self.loss_fn(self.net(signal), activity)


class Fixed(Step):
    net_cls = ActivityNetBF


def example():
    g = torch.Generator().manual_seed(1)
    return torch.randn(5, 18, 6, generator=g), torch.randint(0, 4, (5,), generator=g)
