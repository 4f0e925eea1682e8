"""Swav prototypes.

CORRECT: Sinkhorn equalises the prototypes, normalisation over the batch is wanted.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


@torch.no_grad()
def sinkhorn(scores, eps=0.05, n_iters=3):
    log_q = scores / eps
    for _ in range(n_iters):
        log_q = log_q - torch.logsumexp(log_q, dim=0, keepdim=True)
        log_q = log_q - torch.logsumexp(log_q, dim=1, keepdim=True)
    return log_q.exp()


class Step(nn.Module):
    def __init__(self, d_in=37, d=20, n_proto=15, temp=0.1):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(d_in, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, d))
        self.prototypes = nn.Linear(d, n_proto, bias=False)
        self.temp = temp

    def scores(self, x):
        return self.prototypes(F.normalize(self.encoder(x), dim=1))

    def forward(self, a, b):
        sa, sb = self.scores(a), self.scores(b)
        qa, qb = sinkhorn(sa.detach()), sinkhorn(sb.detach())
        loss = 0.0
        for q, s in ((qa, sb), (qb, sa)):
            loss = loss - (q * F.log_softmax(s / self.temp, dim=1)).sum(dim=1).mean()
        return loss / 2


def example():
    torch.manual_seed(0)
    x = torch.randn(32, 37)
    return x + 0.2 * torch.randn_like(x), x + 0.2 * torch.randn_like(x)
