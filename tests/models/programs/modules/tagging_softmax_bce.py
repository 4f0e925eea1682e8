"""Multi-label audio tagging (several tags can be true at once).

The tags are independent, but the head uses softmax, so probabilities sum to one, and binary
cross entropy asks several of them to be 1.  Fix: sigmoid.
"""
import torch
import torch.nn.functional as F
from torch import nn

OPEN = [{0: "clips"}, {0: "clips"}]


class Step(nn.Module):
    def __init__(self, tags=7):
        super().__init__()
        self.bn = nn.BatchNorm1d(16)
        self.conv = nn.Conv1d(16, 24, 5)
        self.head = nn.Linear(24, tags)

    def prob(self, z):
        return F.softmax(z, dim=1)

    def forward(self, spec, tags):
        h = F.elu(self.conv(self.bn(spec))).amax(-1)
        p = self.prob(self.head(h)).clamp(1e-7, 1 - 1e-7)
        return -(tags * p.log() + (1 - tags) * (1 - p).log()).mean()  # fault: classes-of-softmax-as-tags


class Fixed(Step):
    def prob(self, z):
        return torch.sigmoid(z)


def example():
    torch.manual_seed(35)
    return torch.randn(4, 16, 20), (torch.rand(4, 7) > 0.6).float()
