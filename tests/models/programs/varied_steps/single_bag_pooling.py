"""One bag a step (multiple instances of one patient), ordinal target with 4 thresholds.

CORRECT: the bag has no batch axis, so softmax over dim=0 is over the instances; the (4,) logits meet a (4,) target built by grade > arange(4), and the half-precision features are raised to float32 before pooling.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, d=17):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(d, 8), nn.Tanh(), nn.Linear(8, 1))
        self.rank = nn.Linear(d, 1, bias=False)
        self.bias = nn.Parameter(torch.tensor([1.0, 0.3, -0.3, -1.0]))

    def forward(self, instances, grade):
        x = instances.float()
        w = torch.softmax(self.score(x), dim=0)
        bag = (w * x).sum(0)
        logits = self.rank(bag) + self.bias
        levels = (grade > torch.arange(4)).float()
        return F.binary_cross_entropy_with_logits(logits, levels, reduction="sum")


def example():
    torch.manual_seed(17)
    return torch.randn(8, 17).half(), torch.tensor(2)


OPEN = [{0: "instances"}, None]
