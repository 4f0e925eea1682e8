"""Binary focal loss for rare surface defects: 12 defect types, many more negatives than positives.

MISTAKE (silent): the cross-entropy is reduced to its mean first, so (1 - pt)^gamma is one number for the batch and not a weight per element; reduction="none" is missing.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, gamma=2.0, alpha=0.25):
        super().__init__()
        self.gamma = gamma
        self.alpha = alpha
        self.body = nn.Sequential(nn.Linear(30, 30), nn.LeakyReLU(0.1))
        self.head = nn.Linear(30, 12)
        nn.init.constant_(self.head.bias, -2.0)

    def bce(self, logits, target):
        return F.binary_cross_entropy_with_logits(logits, target)

    def focal(self, logits, target):
        bce = self.bce(logits, target)
        pt = torch.exp(-bce)  # fault: reduction-over-batch-axis
        a = target * self.alpha + (1 - target) * (1 - self.alpha)
        return (a * (1 - pt) ** self.gamma * bce).mean()  # fault: reduction-over-batch-axis

    def forward(self, feats, defects):
        return self.focal(self.head(self.body(feats)), defects.float())  # fault: reduction-over-batch-axis


class Fixed(Step):
    def bce(self, logits, target):
        return F.binary_cross_entropy_with_logits(logits, target, reduction="none")


def example():
    torch.manual_seed(13)
    return torch.randn(5, 30), torch.rand(5, 12) < 0.1


OPEN = [{0: "batch"}, {0: "batch"}]
