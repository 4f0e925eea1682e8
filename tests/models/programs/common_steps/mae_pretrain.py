"""Mae pretrain.

CORRECT: MAE: loss on removed patches only, per-patch target normalisation, correct patchify.
"""
import torch
import torch.nn as nn


class Step(nn.Module):
    """Masked autoencoder; mask: 1 = patch was removed, 0 = kept (as in the reference code)."""

    def __init__(self, p=4, n=16, dim=24, keep=6):
        super().__init__()
        self.p, self.keep = p, keep
        self.embed = nn.Linear(3 * p * p, dim)
        self.pos = nn.Parameter(torch.randn(1, n, dim) * 0.02)
        self.enc = nn.TransformerEncoderLayer(dim, 4, 48, dropout=0.0, batch_first=True)
        self.mask_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.dec = nn.TransformerEncoderLayer(dim, 4, 48, dropout=0.0, batch_first=True)
        self.pred = nn.Linear(dim, 3 * p * p)

    def patchify(self, x):
        b, c, hh, ww = x.shape
        h, w = hh // self.p, ww // self.p
        x = x.reshape(b, c, h, self.p, w, self.p)
        return torch.einsum("nchpwq->nhwpqc", x).reshape(b, h * w, -1)

    def forward(self, imgs, noise):
        target = self.patchify(imgs)
        tokens = self.embed(target) + self.pos
        b, n, d = tokens.shape
        ids_shuffle = noise.argsort(dim=1)
        ids_restore = ids_shuffle.argsort(dim=1)
        ids_keep = ids_shuffle[:, :self.keep].unsqueeze(-1).expand(-1, -1, d)
        latent = self.enc(tokens.gather(1, ids_keep))
        filler = self.mask_token.expand(b, n - self.keep, d)
        full = torch.cat([latent, filler], dim=1)
        full = full.gather(1, ids_restore.unsqueeze(-1).expand(-1, -1, d)) + self.pos
        mask = (ids_restore >= self.keep).float()
        mean = target.mean(dim=-1, keepdim=True)
        var = target.var(dim=-1, keepdim=True)
        target = (target - mean) / (var + 1e-6) ** 0.5
        loss = (self.pred(self.dec(full)) - target).pow(2).mean(dim=-1)
        return (loss * mask).sum() / mask.sum()


def example():
    g = torch.Generator().manual_seed(32)
    return torch.randn(3, 3, 16, 16, generator=g), torch.rand(3, 16, generator=g)
