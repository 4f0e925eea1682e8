"""Attention without any causal mask in shifted LM.

MISTAKE (silent), found by prediction-reads-target.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(20, 8); self.q = nn.Linear(8, 8); self.k = nn.Linear(8, 8); self.v = nn.Linear(8, 8); self.o = nn.Linear(8, 20)

    def forward(self, t):
        x, y = t[:, :-1], t[:, 1:]
        h = self.e(x)
        h = F.scaled_dot_product_attention(self.q(h), self.k(h), self.v(h))  # fault: prediction-reads-target
        return F.cross_entropy(self.o(h).reshape(-1, 20), y.reshape(-1))


def example():
    torch.manual_seed(0)
    return (torch.randint(0, 20, (3, 7)),)
