import torch
from torch import nn


class DomainMMD(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(12, 5)

    @staticmethod
    def k(x, y):
        d = (x.unsqueeze(1) - y.unsqueeze(0)).square().sum(-1)
        return sum(torch.exp(-d / s) for s in (0.5, 1.0, 4.0))

    def forward(self, src, tgt):
        x, y = self.f(src), self.f(tgt)
        return self.k(x, x).mean() + self.k(y, y).mean() - 2 * self.k(x, y).mean()


def example():
    return (torch.randn(8, 12), torch.randn(8, 12) + 1)


Step = DomainMMD
OPEN = [{0: "batch"}, {0: "batch"}]
