"""User-interest model: for each user, which of 10 tags apply (several may, a multi-hot vector).

MISTAKE (silent): independent yes/no labels are scored against a softmax, whose outputs sum to 1, so two tags cannot both be likely;
use sigmoid (binary_cross_entropy_with_logits).
"""
import torch
from torch import nn
from torch.nn import functional as F


class Step(nn.Module):
    def __init__(self, n_user=50, n_tags=10):
        super().__init__()
        self.user = nn.Embedding(n_user, 12)
        self.dense = nn.Linear(6, 12)
        self.top = nn.Linear(24, n_tags)

    def forward(self, uid, ctx, tags):
        h = torch.cat((self.user(uid), F.relu(self.dense(ctx))), dim=-1)
        probs = F.softmax(self.top(h), dim=1)
        return F.binary_cross_entropy(probs, tags)  # fault: classes-of-softmax-as-tags


class Fixed(Step):
    def forward(self, uid, ctx, tags):
        h = torch.cat((self.user(uid), F.relu(self.dense(ctx))), dim=-1)
        return F.binary_cross_entropy_with_logits(self.top(h), tags)


def example():
    torch.manual_seed(71)
    return torch.randint(0, 50, (4,)), torch.randn(4, 6), (torch.rand(4, 10) < 0.3).float()


OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]
