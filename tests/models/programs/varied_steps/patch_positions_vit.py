"""Tiny ViT classifier: patches with learned positions, one attention layer, mean pooling.

MISTAKE (fails): positions run from 1 to 16 and the table has rows 0 to 15, so the last look-up is out of range; arange(n) is right.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

FAILS = True


class Step(nn.Module):
    first = 1

    def __init__(self, d=24):
        super().__init__()
        self.patch = nn.Conv2d(3, d, 4, stride=4)
        self.pos = nn.Embedding(16, d)
        self.qkv = nn.Linear(d, 3 * d)
        self.fc = nn.Linear(d, 5)

    def forward(self, img, y):
        t = self.patch(img).flatten(2).transpose(1, 2)
        t = t + self.pos(torch.arange(self.first, t.size(1) + self.first))  # fault: index-out-of-range
        q, k, v = self.qkv(t).chunk(3, dim=-1)
        a = torch.softmax(q @ k.transpose(1, 2) / q.size(-1) ** 0.5, dim=-1)
        t = t + a @ v
        return F.cross_entropy(self.fc(t.mean(1)), y)


class Fixed(Step):
    first = 0


def example():
    torch.manual_seed(131)
    return torch.randn(4, 3, 16, 16), torch.randint(0, 5, (4,))
