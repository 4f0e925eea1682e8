"""Dense graph attention: softmax over the wrong node axis.

alpha[i, j] weights neighbour j for node i and is used as alpha @ h, so every row must sum to one; the
softmax runs over dim 0.  Fix: dim=1.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, fin=6, fout=4):
        super().__init__()
        self.W = nn.Linear(fin, fout, bias=False)
        self.a_dst = nn.Parameter(torch.randn(fout, 1))
        self.a_src = nn.Parameter(torch.randn(fout, 1))
        self.out = nn.Linear(fout, 1)

    def alpha(self, e):
        return torch.softmax(e, dim=0)

    def forward(self, x, adj, y):
        h = self.W(x)
        e = nn.functional.leaky_relu(h @ self.a_dst + (h @ self.a_src).t(), 0.2)
        e = torch.where(adj > 0, e, torch.full_like(e, -9e15))
        z = nn.functional.elu(self.alpha(e) @ h)  # fault: class-axis-position
        return nn.functional.mse_loss(self.out(z).squeeze(-1), y)


class Fixed(Step):
    def alpha(self, e):
        return torch.softmax(e, dim=1)


def example():
    torch.manual_seed(26)
    adj = ((torch.rand(7, 7) > .6).float() + torch.eye(7)).clamp(max=1)
    return torch.randn(7, 6), adj, torch.randn(7)
