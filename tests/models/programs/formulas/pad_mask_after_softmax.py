"""Cross attention over a padded memory; the padding is zeroed only after the softmax.

The weights over the valid positions no longer sum to one (padding took its share of the softmax).
Fix: masked_fill(-1e9) before the softmax.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.Wq = nn.Linear(d, d)
        self.Wkv = nn.Linear(d, 2 * d)
        self.cls = nn.Linear(d, 3)
        self.d = d

    def weights(self, s, valid):
        w = torch.softmax(s, -1)
        return w * valid[:, None, :].float()

    def forward(self, q, mem, valid, y):
        k, v = self.Wkv(mem).split(self.d, dim=-1)
        s = torch.bmm(self.Wq(q), k.permute(0, 2, 1)) / self.d ** 0.5
        ctx = torch.bmm(self.weights(s, valid), v).mean(1)  # fault: mask-after-softmax
        return nn.functional.cross_entropy(self.cls(ctx), y)


class Fixed(Step):
    def weights(self, s, valid):
        s = s.masked_fill(~valid[:, None, :], -1e9)
        return torch.softmax(s, -1)


def example():
    torch.manual_seed(6)
    valid = torch.ones(4, 7, dtype=torch.bool)
    valid[1, 4:] = False
    valid[2, 2:] = False
    return torch.randn(4, 3, 16), torch.randn(4, 7, 16), valid, torch.tensor([0, 2, 1, 1])
