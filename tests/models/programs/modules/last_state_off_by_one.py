"""Click-sequence model: the state at the last valid step predicts the conversion.

The gather index is `length` instead of `length - 1`: it takes the first padding step, and for a sequence
that fills the window the index is out of range.  Fix: lengths - 1.
"""
import torch
from torch import nn

OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]


class Step(nn.Module):
    def __init__(self, items=30, d=10):
        super().__init__()
        self.item = nn.Embedding(items, d)
        self.lstm = nn.LSTM(d, d, batch_first=True)
        self.out = nn.Linear(d, 1)

    def last(self, h, n):
        idx = n.view(-1, 1, 1).expand(-1, 1, h.size(2))
        return h.gather(1, idx).squeeze(1)  # wrong: index length instead of length-1

    def forward(self, clicks, n, bought):
        # 1 <= n <= clicks.size(1)
        h, _ = self.lstm(self.item(clicks))
        z = self.out(self.last(h, n)).view(-1)  # fault: no-rule
        return nn.functional.binary_cross_entropy_with_logits(z, bought)


class Fixed(Step):
    def last(self, h, n):
        return super().last(h, n - 1)


def example():
    torch.manual_seed(38)
    return torch.randint(0, 30, (4, 8)), torch.tensor([3, 7, 5, 1]), torch.tensor([0., 1., 1., 0.])
