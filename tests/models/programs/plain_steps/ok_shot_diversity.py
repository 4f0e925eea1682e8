import torch
from torch import nn


class SHOT(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(21, 24), nn.ReLU(), nn.Linear(24, 6))

    def forward(self, x):
        p = torch.softmax(self.f(x), dim=1)
        ent = -(p * torch.log(p + 1e-5)).sum(dim=1).mean()
        marginal = p.mean(dim=0)
        div = (marginal * torch.log(marginal + 1e-5)).sum()
        return ent + div


def example():
    return (torch.randn(16, 21),)


Step = SHOT
