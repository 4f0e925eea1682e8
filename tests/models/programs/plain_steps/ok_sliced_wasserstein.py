import torch
from torch import nn


class SWAE(nn.Module):
    def __init__(self, z=3):
        super().__init__()
        self.enc, self.dec = nn.Linear(16, z), nn.Linear(z, 16)

    def forward(self, x, prior, directions):
        z = self.enc(x)
        w = directions / directions.norm(dim=1, keepdim=True)
        pz, pp = z @ w.t(), prior @ w.t()
        swd = (torch.sort(pz, dim=0)[0] - torch.sort(pp, dim=0)[0]).pow(2).mean()
        return (self.dec(z) - x).abs().mean() + swd


def example():
    return (torch.randn(10, 16), torch.randn(10, 3), torch.randn(7, 3))


Step = SWAE
