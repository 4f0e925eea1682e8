"""Masked patch reconstruction with row and column embeddings.

CORRECT: the integer division is wanted: idx // side is the row and idx % side the column of a patch; the loss is the mean over masked patches only, mask (B, N) against per-patch error (B, N).
"""
import torch
import torch.nn as nn


class Step(nn.Module):
    side, p = 4, 3

    def __init__(self, d=20):
        super().__init__()
        n = self.side ** 2
        self.register_buffer("idx", torch.arange(n))
        self.row, self.col = nn.Embedding(self.side, d), nn.Embedding(self.side, d)
        self.embed = nn.Linear(self.p * self.p, d)
        self.mask_token = nn.Parameter(torch.zeros(d))
        self.mixer = nn.Linear(n, n)
        self.out = nn.Linear(d, self.p * self.p)

    def patchify(self, x):
        b = x.shape[0]
        x = x.view(b, self.side, self.p, self.side, self.p)
        return x.permute(0, 1, 3, 2, 4).reshape(b, self.side ** 2, self.p * self.p)

    def forward(self, img, masked):
        target = self.patchify(img)
        h = torch.where(masked.unsqueeze(-1), self.mask_token, self.embed(target))
        h = h + self.row(self.idx // self.side) + self.col(self.idx % self.side)
        h = h + self.mixer(h.transpose(1, 2)).transpose(1, 2).relu()
        err = (self.out(h) - target).pow(2).mean(-1)
        m = masked.float()
        return (err * m).sum() / m.sum().clamp(min=1)


def example():
    torch.manual_seed(7)
    return torch.randn(4, 12, 12), torch.rand(4, 16) < 0.6


OPEN = [{0: "b"}, {0: "b"}]
