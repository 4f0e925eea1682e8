"""BERT-style masked language modelling; `is_masked` marks the positions chosen by the collator.

CORRECT: unusual, and as it is meant.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

MASK_ID = 1


class Encoder(nn.Module):
    def __init__(self, vocab, dim, max_len):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.zeros(max_len, dim))
        self.qkv = nn.Linear(dim, dim * 3)
        self.ln = nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, ids):
        x = self.tok(ids) + self.pos[: ids.shape[1]]
        q, k, v = self.qkv(self.ln(x)).chunk(3, dim=-1)
        att = torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, -1)
        x = x + att @ v
        return x + self.ff(x)


class Step(nn.Module):
    def __init__(self, vocab=64, dim=32):
        super().__init__()
        self.encoder = Encoder(vocab, dim, 20)
        nn.init.normal_(self.encoder.tok.weight, std=0.02)
        self.decoder_bias = nn.Parameter(torch.zeros(vocab))

    def forward(self, input_ids, is_masked):
        corrupted = input_ids.masked_fill(is_masked, MASK_ID)
        labels = input_ids.masked_fill(~is_masked, -100)
        hidden = self.encoder(corrupted)
        logits = F.linear(hidden, self.encoder.tok.weight, self.decoder_bias)
        return F.cross_entropy(logits.transpose(1, 2), labels)


def example():
    g = torch.Generator().manual_seed(22)
    ids = torch.randint(4, 64, (3, 14), generator=g)
    return ids, torch.rand(3, 14, generator=g) < 0.3
