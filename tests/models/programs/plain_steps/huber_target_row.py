import torch
from torch import nn

BATCH = 40


class HousePrices(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer_1 = nn.Linear(9, 32)
        self.layer_2 = nn.Linear(32, 1)
        self.delta = 1.5

    def loss_fn(self, y_pred, y_true):
        err = y_pred - y_true
        quad = torch.clamp(err.abs(), max=self.delta)
        return torch.sum(0.5 * quad ** 2 + self.delta * (err.abs() - quad))

    def forward(self, X_batch, y_batch):
        y_pred = self.layer_2(torch.relu(self.layer_1(X_batch)))
        y_batch = y_batch.view(1, -1)  # fault: silent-broadcast-in-loss
        return self.loss_fn(y_pred, y_batch) / BATCH  # fault: silent-broadcast-in-loss


def example():
    return (torch.randn(BATCH, 9), torch.randn(BATCH))


Step = HousePrices
