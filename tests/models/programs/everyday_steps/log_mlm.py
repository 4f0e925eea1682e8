"""Log mlm.

CORRECT: no shift in masked LM, unchosen positions are -100.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    """BERT style masked modelling of log lines."""

    def __init__(self, vocab=350, dim=48, mask_id=1, pad_id=0):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(64, dim)
        self.enc = nn.TransformerEncoderLayer(dim, 4, 96, dropout=0.0, batch_first=True)
        self.out = nn.Linear(dim, vocab)
        self.mask_id, self.pad_id = mask_id, pad_id

    def forward(self, ids, rnd):
        pad = ids == self.pad_id
        chosen = (rnd < 0.15) & ~pad
        corrupted = torch.where(chosen, torch.full_like(ids, self.mask_id), ids)
        x = self.emb(corrupted) + self.pos(torch.arange(ids.shape[1]))
        h = self.enc(x, src_key_padding_mask=pad)
        labels = torch.where(chosen, ids, torch.full_like(ids, -100))
        return F.cross_entropy(self.out(h).transpose(1, 2), labels)


def example():
    torch.manual_seed(0)
    ids = torch.randint(2, 350, (10, 28))
    ids[:4, 20:] = 0
    return ids, torch.rand(10, 28)
