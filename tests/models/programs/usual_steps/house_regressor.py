"""House regressor.

MISTAKE (silent): pred is [N,1], target is [N]: broadcast to [N,N].
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class PriceNet(nn.Module):
    def __init__(self, n_features=13, hidden=48):
        super().__init__()
        self.norm = nn.BatchNorm1d(n_features)
        self.fc1 = nn.Linear(n_features, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        x = self.norm(x)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.out(x)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = PriceNet()

    def forward(self, x, price):
        pred = self.net(x)
        log_price = torch.log1p(price)
        loss = F.mse_loss(pred, log_price)  # fault: silent-broadcast-in-loss
        return loss


def example():
    torch.manual_seed(0)
    return torch.randn(20, 13), torch.rand(20) * 500
