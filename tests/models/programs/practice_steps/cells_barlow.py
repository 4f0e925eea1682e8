"""Self-supervised single-cell embeddings with Barlow Twins.

CORRECT: the embeddings are standardised over the batch (dim=0), the cross-correlation is between features
([D, B] @ [B, D]), the diagonal goes to one and the rest to zero.
"""
import torch
import torch.nn as nn


class CellEncoder(nn.Module):
    def __init__(self, n_genes=40, hidden=28, emb=10):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_genes, hidden), nn.LayerNorm(hidden), nn.ReLU(),
            nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, emb),
        )

    def forward(self, counts):
        total = counts.sum(dim=1, keepdim=True).clamp(min=1)
        return self.net(torch.log1p(counts / total * 100.0))


def standardize(z, eps=1e-5):
    return (z - z.mean(dim=0)) / (z.var(dim=0, unbiased=False) + eps).sqrt()


class Step(nn.Module):
    def __init__(self, lambd=0.005):
        super().__init__()
        self.encoder = CellEncoder()
        self.lambd = lambd

    def forward(self, counts, keep_a, keep_b):
        # two views of a cell: different genes dropped out
        za = standardize(self.encoder(counts * keep_a))
        zb = standardize(self.encoder(counts * keep_b))
        c = za.t() @ zb / counts.shape[0]
        eye = torch.eye(c.shape[0])
        on_diag = ((c - 1) ** 2 * eye).sum()
        off_diag = (c ** 2 * (1 - eye)).sum()
        return on_diag + self.lambd * off_diag


def example():
    g = torch.Generator().manual_seed(1)
    return (
        torch.randint(0, 6, (7, 40), generator=g).float(),
        (torch.rand(7, 40, generator=g) > 0.2).float(),
        (torch.rand(7, 40, generator=g) > 0.2).float(),
    )


OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]
