import torch
from torch import nn


class DemandModel(nn.Module):
    def __init__(self, n_feat=12):
        super().__init__()
        self.linear = nn.Linear(n_feat, 1)

    @staticmethod
    def criterion(log_rate, count):
        return torch.mean(torch.exp(log_rate) - count * log_rate)

    def training_step(self, batch):
        feats, sold = batch
        log_rate = self.linear(feats)
        loss = self.criterion(log_rate, sold)  # fault: silent-broadcast-in-loss
        return loss

    def forward(self, feats, sold):
        return self.training_step((feats, sold))  # fault: silent-broadcast-in-loss


def example():
    return (torch.randn(32, 12), torch.poisson(torch.full((32,), 3.0)))


Step = DemandModel
