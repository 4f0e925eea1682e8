import torch
import torch.nn.functional as F
from torch import nn


class SwAV(nn.Module):
    def __init__(self, k=6, d=8):
        super().__init__()
        self.enc = nn.Linear(15, d)
        self.protos = nn.Linear(d, k, bias=False)

    @torch.no_grad()
    def sinkhorn(self, scores, eps=0.5):
        q = torch.exp(scores / eps).t()
        q = q / q.sum()
        for _ in range(3):
            q = q / q.sum(dim=1, keepdim=True) / q.shape[0]
            q = q / q.sum(dim=0, keepdim=True) / q.shape[1]
        return (q * q.shape[1]).t()

    def forward(self, a, b):
        s1 = self.protos(F.normalize(self.enc(a), dim=1))
        s2 = self.protos(F.normalize(self.enc(b), dim=1))
        q1, q2 = self.sinkhorn(s1), self.sinkhorn(s2)
        p1, p2 = F.log_softmax(s1 / 0.1, 1), F.log_softmax(s2 / 0.1, 1)
        return -0.5 * ((q1 * p2).sum(1) + (q2 * p1).sum(1)).mean()


def example():
    return (torch.randn(12, 15), torch.randn(12, 15))


Step = SwAV
