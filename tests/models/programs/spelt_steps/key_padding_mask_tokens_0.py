"""Key_padding_mask = tokens != 0.

MISTAKE (silent), found by inverted-mask.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(20, 8, padding_idx=0); self.a = nn.MultiheadAttention(8, 2, batch_first=True); self.o = nn.Linear(8, 2)

    def forward(self, tokens, y):
        h = self.e(tokens)
        h, _ = self.a(h, h, h, key_padding_mask=tokens != 0)  # fault: inverted-mask
        return F.cross_entropy(self.o(h[:, 0]), y)


def example():
    torch.manual_seed(0)
    return (torch.tensor([[1, 4, 6, 0, 0], [3, 2, 1, 4, 0]]), torch.randint(0, 2, (2,)),)
