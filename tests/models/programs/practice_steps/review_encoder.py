"""Sentiment of padded reviews with a small transformer encoder.

MISTAKE (silent): src_key_padding_mask has to be True at padding, the step passes True at the real words, so
the encoder attends only to the padding.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class ReviewEncoder(nn.Module):
    def __init__(self, vocab=70, d=16, max_len=20, n_class=3):
        super().__init__()
        self.tok = nn.Embedding(vocab, d, padding_idx=0)
        self.pos = nn.Parameter(torch.randn(1, max_len, d) * 0.02)
        layer = nn.TransformerEncoderLayer(d, nhead=2, dim_feedforward=32, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=1, enable_nested_tensor=False)
        self.cls = nn.Linear(d, n_class)

    def forward(self, ids, key_padding_mask, keep):
        x = self.tok(ids) + self.pos[:, : ids.size(1)]
        h = self.encoder(x, src_key_padding_mask=key_padding_mask)  # fault: inverted-mask
        pooled = (h * keep.unsqueeze(-1)).sum(1) / keep.sum(1, keepdim=True)
        return self.cls(pooled)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = ReviewEncoder()

    def forward(self, ids, sentiment):
        keep = (ids != 0).float()
        logits = self.model(ids, ids != 0, keep)
        return F.cross_entropy(logits, sentiment)


class Fixed(Step):
    def forward(self, ids, sentiment):
        keep = (ids != 0).float()
        logits = self.model(ids, ids == 0, keep)
        return F.cross_entropy(logits, sentiment)


def example():
    g = torch.Generator().manual_seed(1)
    ids = torch.randint(1, 70, (5, 12), generator=g)
    for i, n in enumerate([10, 6, 11, 3, 8]):
        ids[i, n:] = 0
    return ids, torch.randint(0, 3, (5,), generator=g)
