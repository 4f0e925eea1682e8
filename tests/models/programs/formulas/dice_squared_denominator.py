"""V-Net dice with squared terms in the denominator and factor 2, per class, background left out with [:, 1:]."""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv3d(1, 3, 3, padding=1)

    def forward(self, vol, lab):
        p = self.c(vol).softmax(1)
        g = torch.nn.functional.one_hot(lab, 3).permute(0, 4, 1, 2, 3).to(p.dtype)
        p, g = p[:, 1:].flatten(2), g[:, 1:].flatten(2)
        d = 2 * (p * g).sum(-1) / (p.square().sum(-1) + g.square().sum(-1) + 1e-5)
        return (1 - d).mean()


def example():
    torch.manual_seed(62)
    return torch.randn(2, 1, 4, 4, 4), torch.randint(0, 3, (2, 4, 4, 4))
