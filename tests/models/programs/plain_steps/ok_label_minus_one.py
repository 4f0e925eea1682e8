import torch
import torch.nn.functional as F
from torch import nn


class StarsOK(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(13, 5)

    def forward(self, x, votes):
        stars = votes.argmax(1) + 1
        logits = self.fc(x)
        expected = (logits.softmax(1) * torch.arange(1, 6)).sum(1)
        return F.cross_entropy(logits, stars - 1) + 0.1 * (expected - stars).abs().mean()


def example():
    return (torch.randn(7, 13), torch.rand(7, 5))


Step = StarsOK
