"""SBERT-like regression of STS scores.

MISTAKE (silent): mean pooling over the padded length although padding is zeroed (divisor not the mask sum).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SentenceEncoder(nn.Module):
    def __init__(self, vocab=300, dim=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        layer = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def forward(self, ids):
        pad = ids == 0
        hidden = self.encoder(self.embed(ids), src_key_padding_mask=pad)
        hidden = hidden * (~pad).unsqueeze(-1).to(hidden.dtype)
        return hidden.mean(dim=1)  # fault: mean-over-padding


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = SentenceEncoder()
        self.head = nn.Linear(3 * 32, 1)

    def forward(self, ids_a, ids_b, score):
        u, v = self.encoder(ids_a), self.encoder(ids_b)
        feats = torch.cat([u, v, (u - v).abs()], dim=-1)
        pred = self.head(feats).squeeze(-1)
        return F.mse_loss(pred, score / 5.0)


def example():
    g = torch.Generator().manual_seed(14)
    a = torch.randint(1, 300, (5, 12), generator=g)
    b = torch.randint(1, 300, (5, 10), generator=g)
    a[0, 5:], a[3, 8:], b[1, 3:], b[4, 7:] = 0, 0, 0, 0
    return a, b, torch.rand(5, generator=g) * 5
