import torch
import torch.nn.functional as F
from torch import nn


class Coral(nn.Module):
    def __init__(self, k=6):
        super().__init__()
        self.k = k
        self.w = nn.Linear(19, 1, bias=False)
        self.b = nn.Parameter(torch.arange(k - 1, 0, -1).float() / (k - 1))

    def forward(self, x, y):
        logits = self.w(x) + self.b
        levels = (y[:, None] > torch.arange(self.k - 1)).to(logits.dtype)
        ll = F.logsigmoid(logits) * levels + (F.logsigmoid(logits) - logits) * (1 - levels)
        return -ll.sum(1).mean()


def example():
    return (torch.randn(9, 19), torch.randint(0, 6, (9,)))


Step = Coral
