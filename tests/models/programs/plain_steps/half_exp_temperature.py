import torch
import torch.nn.functional as F
from torch import nn


class NTXent(nn.Module):
    def __init__(self, t=0.05):
        super().__init__()
        self.t = t
        self.f = nn.Linear(30, 12)

    def forward(self, a, b):
        za, zb = F.normalize(self.f(a), dim=1), F.normalize(self.f(b), dim=1)
        sim = torch.mm(za, zb.t()).half()
        e = torch.exp(sim / self.t)  # fault: overflow-in-exp
        pos = torch.diagonal(e).float()
        return -torch.log(pos / e.float().sum(1)).mean()


def example():
    x = torch.randn(6, 30)
    return (x, x + 0.02 * torch.randn(6, 30))


Step = NTXent
