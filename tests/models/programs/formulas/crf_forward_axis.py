"""Linear-chain CRF: the forward recursion sums over the destination tag.

alpha[i] + trans[i, j] + emit[j] must be reduced over i (dim 1); the logsumexp runs over dim 2.  Fix: dim=1.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, K=4):
        super().__init__()
        self.lin = nn.Linear(5, K)
        self.tr = nn.Parameter(torch.randn(K, K) * .3)

    def marginal(self, s):
        return torch.logsumexp(s, dim=2)

    def forward(self, x, tags):
        em = self.lin(x)
        _B, _T, _K = em.shape
        gold = em.gather(2, tags[..., None]).sum((1, 2)) + self.tr[tags[:, :-1], tags[:, 1:]].sum(1)
        a = em[:, 0]
        for t in range(1, 5):
            s = a.unsqueeze(2) + self.tr.unsqueeze(0) + em[:, t].unsqueeze(1)
            a = self.marginal(s)  # fault: states-never-mix
        return (torch.logsumexp(a, 1) - gold).mean()


class Fixed(Step):
    def marginal(self, s):
        return torch.logsumexp(s, dim=1)


def example():
    torch.manual_seed(46)
    return torch.randn(3, 5, 5), torch.randint(0, 4, (3, 5))
