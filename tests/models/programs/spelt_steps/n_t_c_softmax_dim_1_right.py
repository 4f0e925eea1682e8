"""[N,T,C] softmax dim=1 then nll.

CORRECT: the same as it is meant.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.LSTM(8, 12, batch_first=True); self.o = nn.Linear(12, 5)

    def forward(self, x, y):
        h, _ = self.l(x)
        lp = F.log_softmax(self.o(h), dim=2)
        return F.nll_loss(lp.view(-1, 5), y.view(-1))


def example():
    torch.manual_seed(0)
    return (torch.randn(3, 6, 8), torch.randint(0, 5, (3, 6)),)
