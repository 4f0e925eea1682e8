"""Swav codes.

CORRECT: Sinkhorn step over the batch, equal use of prototypes.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, d_in=64, dim=32, n_proto=50, tau=0.1, eps=0.05):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d_in, 64), nn.ReLU(), nn.Linear(64, dim))
        self.proto = nn.Linear(dim, n_proto, bias=False)
        self.tau, self.eps = tau, eps

    def forward(self, v1, v2):
        s1 = self.proto(F.normalize(self.enc(v1), dim=1))
        s2 = self.proto(F.normalize(self.enc(v2), dim=1))
        losses = []
        for code_from, predict in ((s1, s2), (s2, s1)):
            with torch.no_grad():
                q = torch.exp((code_from - code_from.max()) / self.eps)
                q = q / q.sum()
                for _ in range(3):
                    q = q / q.sum(dim=0, keepdim=True) / q.shape[1]
                    q = q / q.sum(dim=1, keepdim=True) / q.shape[0]
                q = q * q.shape[0]
            losses.append(-(q * F.log_softmax(predict / self.tau, dim=1)).sum(dim=1).mean())
        return 0.5 * (losses[0] + losses[1])


def example():
    torch.manual_seed(0)
    return torch.randn(96, 64), torch.randn(96, 64)
