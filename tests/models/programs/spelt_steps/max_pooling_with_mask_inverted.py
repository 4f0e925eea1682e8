"""Max pooling with mask inverted.

MISTAKE (silent), found by inverted-mask.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(8, 8); self.o = nn.Linear(8, 2)

    def forward(self, x, lengths, y):
        valid = torch.arange(6)[None, :] < lengths[:, None]
        h = self.l(x).masked_fill(valid.unsqueeze(-1), -1e9)  # fault: inverted-mask
        return F.cross_entropy(self.o(h.max(1).values), y)


def example():
    torch.manual_seed(0)
    return (torch.randn(3, 6, 8), torch.tensor([3, 6, 2]), torch.randint(0, 2, (3,)),)
