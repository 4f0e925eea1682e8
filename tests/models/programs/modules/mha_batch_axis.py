"""Event sequence classifier: nn.MultiheadAttention on (batch, time, channel).

batch_first is False by default, so the first axis is taken for time: every event attends to
the same time step of the *other samples*.  Fix: batch_first=True.
"""
import torch
from torch import nn


class Step(nn.Module):
    bf = False

    def __init__(self, d=16):
        super().__init__()
        self.up = nn.Linear(6, d)
        self.attn = nn.MultiheadAttention(d, 4, batch_first=self.bf)
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, 2)

    def forward(self, events, label):
        # events: (batch, time, 6)
        h = self.up(events)
        a, _ = self.attn(h, h, h, need_weights=False)  # fault: reduction-over-batch-axis
        h = self.norm(h + a)
        return nn.functional.cross_entropy(self.head(h.mean(dim=1)), label)


class Fixed(Step):
    bf = True


def example():
    torch.manual_seed(33)
    return torch.randn(5, 7, 6), torch.randint(0, 2, (5,))
