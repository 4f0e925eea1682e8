import torch
from torch import nn


class Churn(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(11, 16),
            nn.ReLU(),
            nn.Linear(16, 1),
            nn.Sigmoid(),
        )
        self.loss = nn.BCEWithLogitsLoss()

    def forward(self, x, churned):
        return self.loss(self.net(x).squeeze(1), churned)  # fault: probabilities-into-logit-loss


def example():
    return (torch.randn(20, 11), (torch.rand(20) > 0.6).float())


Step = Churn
