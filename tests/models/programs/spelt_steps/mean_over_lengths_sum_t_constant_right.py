"""Mean over lengths: sum / T constant.

CORRECT: the same as it is meant.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.GRU(8, 12, batch_first=True); self.o = nn.Linear(12, 2)

    def forward(self, x, lengths, y):
        h, _ = self.l(x)
        valid = (torch.arange(6)[None, :] < lengths[:, None]).float().unsqueeze(-1)
        z = (h * valid).sum(1) / lengths[:, None]
        return F.cross_entropy(self.o(z), y)


def example():
    torch.manual_seed(0)
    return (torch.randn(3, 6, 8), torch.tensor([3, 5, 2]), torch.randint(0, 2, (3,)),)
