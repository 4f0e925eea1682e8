import torch
import torch.nn.functional as F
from torch import nn


class SGNS(nn.Module):
    def __init__(self, v=90, d=12):
        super().__init__()
        self.inp, self.out = nn.Embedding(v, d), nn.Embedding(v, d)

    def forward(self, center, context, negatives):
        c = self.inp(center)
        pos = (c * self.out(context)).sum(1)
        neg = torch.bmm(self.out(negatives), c.unsqueeze(2)).squeeze(2)
        return -(F.logsigmoid(pos) + F.logsigmoid(-neg).sum(1)).mean()


def example():
    return (torch.randint(0, 90, (7,)), torch.randint(0, 90, (7,)), torch.randint(0, 90, (7, 5)))


Step = SGNS
