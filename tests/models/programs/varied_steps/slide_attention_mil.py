"""Multiple-instance learning on histology slides: gated attention pooling over the tiles, one label a slide.

MISTAKE (silent): the attention scores are (B, N, 1) and softmax is over the last axis of size 1, so all weights are 1 and pooling is a plain sum; it should be dim=1.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, d=18, hidden=10):
        super().__init__()
        self.V = nn.Linear(d, hidden)
        self.U = nn.Linear(d, hidden)
        self.w = nn.Linear(hidden, 1)
        self.clf = nn.Linear(d, 1)

    def forward(self, tiles, tumour):
        a = self.w(torch.tanh(self.V(tiles)) * torch.sigmoid(self.U(tiles)))
        a = F.softmax(a, dim=-1)  # fault: softmax-over-batch-axis
        bag = (a * tiles).sum(dim=1)
        logit = self.clf(bag).view(-1)
        return F.binary_cross_entropy_with_logits(logit, tumour)


class Fixed(Step):
    def forward(self, tiles, tumour):
        a = self.w(torch.tanh(self.V(tiles)) * torch.sigmoid(self.U(tiles)))
        a = F.softmax(a, dim=1)
        bag = (a * tiles).sum(dim=1)
        logit = self.clf(bag).view(-1)
        return F.binary_cross_entropy_with_logits(logit, tumour)


def example():
    torch.manual_seed(83)
    return torch.randn(4, 9, 18), torch.tensor([1.0, 0.0, 0.0, 1.0])


OPEN = [{0: "slides"}, {0: "slides"}]
