import copy

import torch
import torch.nn.functional as F
from torch import nn


class BYOL(nn.Module):
    def __init__(self):
        super().__init__()
        self.online = nn.Sequential(nn.Linear(18, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10))
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.pred = nn.Linear(10, 10)

    def reg(self, p, z):
        return 2 - 2 * (F.normalize(p, dim=-1) * F.normalize(z.detach(), dim=-1)).sum(dim=-1)

    def forward(self, a, b):
        l = self.reg(self.pred(self.online(a)), self.target(b)) + self.reg(self.pred(self.online(b)), self.target(a))
        return l.mean()


def example():
    return (torch.randn(6, 18), torch.randn(6, 18))


Step = BYOL
OPEN = [{0: "batch"}, {0: "batch"}]
