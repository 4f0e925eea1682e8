import torch
from torch import nn


class ListNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 1))

    def forward(self, docs, rel, valid):
        s = self.mlp(docs).squeeze(-1)                      # [Q, D]
        s = s.masked_fill(valid == 0, -1e4)
        p = torch.softmax(rel.masked_fill(valid == 0, -1e4), dim=1)
        return -(p * torch.log_softmax(s, dim=1)).sum(dim=1).mean()


def example():
    v = torch.ones(4, 9); v[1:, 6:] = 0
    return (torch.randn(4, 9, 10), torch.randint(0, 4, (4, 9)).float(), v)


Step = ListNet
