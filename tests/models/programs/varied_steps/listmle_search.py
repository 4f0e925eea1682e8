"""ListMLE for search results: scores are put into the order of the true relevance, then the Plackett-Luce likelihood.

MISTAKE (silent): gather(0, order) takes the scores of other queries (order holds document numbers inside a query); the documents lie on axis 1.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1 = nn.Linear(11, 16)
        self.w2 = nn.Linear(16, 1)

    def forward(self, features, relevance):
        s = self.w2(torch.tanh(self.w1(features)))[..., 0]
        order = relevance.argsort(dim=1, descending=True)
        s = torch.gather(s, 0, order)  # fault: index-of-other-axis
        s = s - s.max(dim=1, keepdim=True).values
        tail = s.exp().flip(1).cumsum(1).flip(1)
        return (torch.log(tail + 1e-10) - s).sum(dim=1).mean()


class Fixed(Step):
    def forward(self, features, relevance):
        s = self.w2(torch.tanh(self.w1(features)))[..., 0]
        order = relevance.argsort(dim=1, descending=True)
        s = torch.gather(s, 1, order)
        s = s - s.max(dim=1, keepdim=True).values
        tail = s.exp().flip(1).cumsum(1).flip(1)
        return (torch.log(tail + 1e-10) - s).sum(dim=1).mean()


def example():
    torch.manual_seed(97)
    return torch.randn(8, 6, 11), torch.rand(8, 6)
