"""Cloud fraction unmixing: every pixel is a mixture of five endmembers.

CORRECT: softmax over dim 1 is the abundance over endmembers in NCHW; the mixing is a contraction with the (5, bands) spectra; the mean abundance over pixels is compared with the label shares (rows sum to 1).
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, bands=8, members=5):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(bands, 16, 1), nn.LeakyReLU(), nn.Conv2d(16, members, 1))
        self.spectra = nn.Parameter(torch.rand(members, bands))

    def forward(self, cube, shares):
        ab = self.enc(cube).softmax(dim=1)
        rec = torch.einsum("bmhw,mc->bchw", ab, self.spectra)
        cos = nn.functional.cosine_similarity(rec, cube, dim=1)
        sad = torch.acos(cos.clamp(-0.9999, 0.9999)).mean()
        avg = ab.flatten(2).mean(-1)
        kl = (shares * (torch.log(shares + 1e-6) - torch.log(avg + 1e-6))).sum(1).mean()
        return sad + kl


def example():
    torch.manual_seed(111)
    return torch.rand(3, 8, 7, 7), torch.rand(3, 5).softmax(1)
