"""Sequence classifier with a plain recurrent cell whose recurrent matrix is kept near orthogonal by a soft penalty ||W W^T - I||^2.

MISTAKE (silent): the penalty subtracts the scalar 1 from the whole Gram matrix, i.e. a matrix of ones, not the identity, so it
drives all rows of W to be the same; subtract torch.eye(hidden).
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, n_in=5, hidden=12, n_cls=4, lam=1e-2):
        super().__init__()
        self.w_x = nn.Linear(n_in, hidden)
        self.w_h = nn.Parameter(torch.randn(hidden, hidden) / hidden ** 0.5)
        self.out = nn.Linear(hidden, n_cls)
        self.lam = lam

    def ortho_penalty(self):
        gram = self.w_h @ self.w_h.t()
        return (gram - 1).pow(2).sum()  # fault: ones-for-identity

    def forward(self, x, y):
        h = x.new_zeros(x.shape[0], self.w_h.shape[0])
        for t in range(7):
            h = torch.tanh(self.w_x(x[:, t]) + h @ self.w_h.t())
        ce = F.cross_entropy(self.out(h), y)
        return ce + self.lam * self.ortho_penalty()  # fault: ones-for-identity


class Fixed(Step):
    def ortho_penalty(self):
        gram = self.w_h @ self.w_h.t()
        return (gram - torch.eye(self.w_h.shape[0])).pow(2).sum()


def example():
    torch.manual_seed(3)
    return torch.randn(4, 7, 5), torch.randint(0, 4, (4,))
