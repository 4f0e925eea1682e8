"""Length-of-stay regression from 8 lab values, of which a fixed list of columns is used.

MISTAKE (fails): the list counts the columns from 1 (it ends with 8) where there are 0..7, so index_select is always out of range; subtract 1.
"""
import torch
from torch import nn


class Step(nn.Module):
    shift = 0

    def __init__(self):
        super().__init__()
        self.register_buffer("cols", torch.tensor([1, 2, 4, 5, 8]) - self.shift)
        self.bn = nn.LayerNorm(5)
        self.fc = nn.Sequential(nn.Linear(5, 16), nn.ELU(), nn.Linear(16, 1))

    def forward(self, labs, days):
        x = torch.index_select(labs, 1, self.cols)  # fault: index-out-of-range
        y = self.fc(self.bn(x)).squeeze(-1)
        return nn.functional.mse_loss(y, torch.log1p(days))


class Fixed(Step):
    shift = 1


def example():
    torch.manual_seed(8)
    return torch.randn(5, 8), torch.randint(0, 30, (5,)).float()


FAILS = True
