"""SwAV: codes of one view by three Sinkhorn rounds, predicted from the other view.

CORRECT: Q is normalised along prototypes and samples in turn, which looks like mixed axes but is the Sinkhorn iteration; at the end each sample's code sums to 1.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, protos=10, d=12):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(22, 30), nn.ReLU(), nn.Linear(30, d))
        self.prototypes = nn.Linear(d, protos, bias=False)

    @torch.no_grad()
    def codes(self, scores, eps=0.1):
        Q = torch.exp((scores - scores.max()) / eps).t()
        K, B = Q.shape
        Q = Q / Q.sum()
        for _ in range(3):
            Q = Q / Q.sum(dim=1, keepdim=True).clamp(min=1e-12) / K
            Q = Q / Q.sum(dim=0, keepdim=True).clamp(min=1e-12) / B
        return (Q * B).t()

    def forward(self, a, b):
        w = F.normalize(self.prototypes.weight, dim=1)
        sa = F.normalize(self.net(a), dim=1) @ w.t()
        sb = F.normalize(self.net(b), dim=1) @ w.t()
        qa, qb = self.codes(sa), self.codes(sb)
        la = -(qb * F.log_softmax(sa / 0.1, dim=1)).sum(1)
        lb = -(qa * F.log_softmax(sb / 0.1, dim=1)).sum(1)
        return 0.5 * (la + lb).mean()


def example():
    torch.manual_seed(9)
    x = torch.randn(8, 22)
    return x + 0.1 * torch.randn(8, 22), x + 0.1 * torch.randn(8, 22)
