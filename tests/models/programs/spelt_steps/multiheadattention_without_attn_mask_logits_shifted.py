"""MultiheadAttention without attn_mask, logits shifted.

MISTAKE (silent), found by prediction-reads-target.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(20, 8); self.p = nn.Embedding(7, 8); self.a = nn.MultiheadAttention(8, 2, batch_first=True); self.o = nn.Linear(8, 20)

    def forward(self, t):
        h = self.e(t) + self.p(torch.arange(7))
        a, _ = self.a(h, h, h, need_weights=False)  # fault: prediction-reads-target
        z = self.o(h + a)
        return F.cross_entropy(z[:, :-1].transpose(1, 2), t[:, 1:])


def example():
    torch.manual_seed(0)
    return (torch.randint(0, 20, (3, 7)),)
